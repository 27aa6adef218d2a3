"""`dr3 select --measure RUN …`: how good the rules are, where true returns are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dr3.cli.select import Select, table_for
from dr3.errors import UserError
from dr3.progress import plain_console

if TYPE_CHECKING:
    from dr3.data import Transitions
    from dr3.diagnostics import Measurements
    from dr3.diagnostics.study import Kept, Outcomes, RuleTrial
    from dr3.runs import Runs
    from dr3.stats import Interval

    Row = dict[str, Interval | None]

RULES = ("last", "td-error", "fqe", "coadaptation", "healthy", "q", "srank")


def measure_rules(opened: Sequence[Runs], options: Select) -> dict[str, Any]:
    """Print how every rule and every sign did, and give everything that was measured."""
    from dataclasses import asdict

    from dr3.diagnostics.study import alarms, comparable, outcomes, recalls, to_json
    from dr3.files import for_json

    found, left_out = comparable(trials_of(opened, options))
    if not options.json:
        for sentence in left_out:
            print(sentence)
    if not found:
        raise UserError("No rule can be measured: no world is left in which the returns of checkpoints differ.")
    rows, verdicts, recalled, false = rules_over(found), outcomes(found), recalls(found), alarms(found)
    kept = kept_by_rankings(opened, options)
    if not options.json:
        _print_rules(rows, found, options)
        _print_verdicts(verdicts, recalled, false)
        _print_kept(kept)
    return {
        "held_out": options.held_out,
        "left_out": left_out,
        "rules": {rule: {name: _plain(of) for name, of in row.items()} for rule, row in rows.items()},
        "verdicts": {name: {"dropped": of.dropped, "counted": of.counted} for name, of in verdicts.items()},
        "recall": {name: {"shown": of.dropped, "fell": of.counted} for name, of in recalled.items()},
        "alarms": {name: {"shown": of.dropped, "stayed": of.counted} for name, of in false.items()},
        "kept": [for_json({**asdict(one), "rightly": one.rightly, "regret": one.regret}) for one in kept],
        "trials": [to_json(trial) for trial in found],
    }


def trials_of(opened: Sequence[Runs], options: Select) -> list[RuleTrial]:
    """Every member of every run; what is measured of them is kept in their folders."""
    import sys

    from dr3.diagnostics.study import trials
    from dr3.reports.kept import kept_fqe

    everyone: list[RuleTrial] = []
    for number, runs in enumerate(opened, start=1):
        data, held_out = (table_for(runs, source) for source in (options.data, options.held_out))
        everyone += trials(
            runs,
            options.rules or RULES,
            data,
            held_out=held_out,
            gradients=options.gradients,
            measuring=_recalled,
            evaluating=kept_fqe,
        )
        print(f"{number} of {len(opened)} runs", file=sys.stderr, flush=True)
    return everyone


def kept_by_rankings(opened: Sequence[Runs], options: Select) -> list[Kept]:
    """What each ranking kept of each run, beside what its policies were worth."""
    from dr3.diagnostics import RANKINGS
    from dr3.diagnostics.study import keeping
    from dr3.runs.outcomes import DISCOUNTED_VALUE

    rules = [rule for rule in RANKINGS if not options.rules or rule in options.rules]
    known = [runs for runs in opened if DISCOUNTED_VALUE in runs.evaluations]  # what estimates are held against
    return [
        kept
        for rule in rules
        for runs in known
        for kept in keeping(runs, rule, table_for(runs, options.held_out) or table_for(runs, options.data))
    ]


def _recalled(runs: Runs, data: Transitions | None, *, steps: Sequence[int], gradients: bool) -> Measurements:
    """As `measure`, but each checkpoint is kept in the run folder as `dr3 report` keeps it: a rerun goes on there."""
    from dr3.reports.checkup import Checkup

    checkup = Checkup(data, gradients=gradients)
    for step in steps:
        checkup.measure(runs, step)
    found = checkup.health(runs)
    assert found is not None
    return found.measurements


def rules_over(found: Sequence[RuleTrial]) -> dict[str, Row]:
    """Means with 95 % intervals: regret as a share of the range of returns seen in the world; how much less of it there
    is than with a checkpoint drawn at random, member by member; and the rank correlation of scores and returns.
    """
    import numpy as np

    from dr3.diagnostics.study import as_matrix, ranges
    from dr3.stats import interval, mean

    seen = ranges(found)
    rng = np.random.default_rng(0)

    def summary(number: Callable[[RuleTrial], float]) -> Interval | None:
        matrix = as_matrix(found, number)
        matrix = matrix[:, ~np.isnan(matrix).all(axis=0)]
        return interval(matrix, mean, rng, replicates=10_000, missing="ignore") if matrix.size else None

    def regret(trial: RuleTrial, rule: str) -> float:
        return trial.regret(rule) / seen[trial.task].span

    def regret_of_any(trial: RuleTrial) -> float:
        return trial.regret_of_any() / seen[trial.task].span

    rows: dict[str, Row] = {
        rule: {
            "regret": summary(lambda trial, rule=rule: regret(trial, rule)),
            "gain": summary(lambda trial, rule=rule: regret_of_any(trial) - regret(trial, rule)),
            "correlation": summary(lambda trial, rule=rule: trial.correlation(rule)),
        }
        for rule in found[0].scores
    }
    rows["any checkpoint"] = {"regret": summary(regret_of_any), "gain": None, "correlation": None}
    return rows


def _plain(of: Interval | None) -> list[float | None] | None:
    """Estimate and limits; null where there are no limits, as JSON knows no NaN."""
    return None if of is None else [of.estimate, *((of.lower, of.upper) if of.has_limits else (None, None))]


def _print_rules(rows: dict[str, Row], found: Sequence[RuleTrial], options: Select) -> None:
    from rich.table import Table

    held_out = f"held-out data {options.held_out}" if options.held_out else "no held-out data"
    table = Table(
        title=f"Rules over {len(found)} members",
        caption="Regret: what is lost, as a share of the distance from the worst to the best return seen in the world. "
        f"Means, 95 % intervals; {held_out}.",
    )
    for column in ("rule", "regret", "gain over any checkpoint", "rank correlation"):
        table.add_column(column, justify="left" if column == "rule" else "right")
    for rule, row in rows.items():
        table.add_row(rule, *["" if of is None else of.text("{:.2f}".format) for of in row.values()])
    plain_console().print(table)


def _print_kept(kept: Sequence[Kept]) -> None:
    import numpy as np
    from rich.table import Table

    if not kept:
        return
    table = Table(
        title="What dr3 select keeps of a run, its members and checkpoints ranked together",
        caption="By true discounted values, against that of the logged policy. Regret: means over runs of which one "
        "was kept, as a share of the distance from the run's worst to its best.",
    )
    columns = ("rule", "keep", "kept one", "better than the logged", "kept none", "none was better", "regret", "any")
    for column in columns:
        table.add_column(column, justify="left" if column in ("rule", "keep") else "right")
    for rule, way in dict.fromkeys((one.rule, one.way) for one in kept):
        of = [one for one in kept if (one.rule, one.way) == (rule, way)]
        some, none = ([one for one in of if (one.kept == one.kept) is is_one] for is_one in (True, False))
        right = [_share([one.rightly for one in part]) for part in (some, none)]
        known = [one for one in some if one.regret == one.regret]
        regrets = [
            f"{np.mean(column):.2f}" if known else "–"
            for column in ([one.regret for one in known], [one.regret_of_any for one in known])
        ]
        table.add_row(rule, way, str(len(some)), right[0], str(len(none)), right[1], *regrets)
    plain_console().print(table)


def _share(rightly: Sequence[bool | None]) -> str:
    """How many of those of which it is known."""
    known = [one for one in rightly if one is not None]
    return f"{sum(known)} of {len(known)}" if known else "–"


def _print_verdicts(rows: dict[str, Outcomes], recalled: dict[str, Outcomes], false: dict[str, Outcomes]) -> None:
    from rich.table import Table

    table = Table(title="Was a sign followed by a drop in true return?")
    columns = (
        "first checkpoint with",
        "followed by a drop",
        "of",
        "fell: had shown it",
        "of",
        "never fell: showed it",
        "of",
    )
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for name, row in rows.items():
        share = f" ({row.share:.0%})" if row.counted else ""
        by_member = [of[name] for of in (recalled, false) if name in of]
        counts = [str(count) for of in by_member for count in (of.dropped, of.counted)]
        table.add_row(name, f"{row.dropped}{share}", str(row.counted), *counts)
    plain_console().print(table)
