"""`dr3 select RUN …`"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from dr3.cli.parsing import parse
from dr3.errors import UserError

if TYPE_CHECKING:
    from dr3.data import Transitions
    from dr3.diagnostics.study import Trial
    from dr3.training import Runs


@dataclass(frozen=True)
class Select:
    """Choose a checkpoint without a simulator, by a declared rule; or measure the rules where returns are known.

    examples:

    dr3 select runs/first --rule fqe

    dr3 select runs/first --rule td-error --held-out validation.npz

    dr3 select --measure runs/* --held-out {world}:seed=100 --json selection.json
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN...")]
    """Run folders."""

    rule: str | None = None
    """How to choose: last, step:N, td-error, fqe, coadaptation, healthy, q or srank."""

    data: str | None = None
    """What the run was trained on, where it is not where it was."""

    held_out: str | None = None
    """Data that the run was not trained on, for td-error; {world} stands for the world of the run's own data."""

    measure: bool = False
    """Compare all rules with the true returns of evaluated runs: regret and rank correlation, with intervals."""

    rules: tuple[str, ...] = ("last", "td-error", "fqe", "coadaptation", "healthy", "q", "srank")
    """Which rules to measure. FQE fits a critic to every checkpoint: on images that takes by far the longest."""

    gradients: bool = True
    """Measure with the spectrum over all parameters, which takes long for large networks; else the last layer's."""

    json: Path | None = None
    """Write what was chosen, or everything that was measured, to this file too."""


def main(arguments: list[str]) -> int:
    options = parse(Select, arguments, prog="dr3 select", description=Select.__doc__ or "")
    if not options.runs:
        raise UserError("dr3 select needs at least one run folder.")

    from dr3.training import Runs

    opened = [Runs(path) for path in options.runs]
    record = _measure(opened, options) if options.measure else [_select(runs, options) for runs in opened]
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=2) + "\n")
    return 0


def _select(runs: Runs, options: Select) -> dict[str, Any]:
    from rich.console import Console
    from rich.table import Table

    from dr3.collect import load
    from dr3.diagnostics import PROTOCOLS, select

    if options.rule is None:
        raise UserError(f"Say by which rule: --rule {', '.join(PROTOCOLS)}; docs/results/selection.md measures them.")
    data = None if options.data is None else load(options.data, discount=runs.members[0].method.discount)
    selection = select(runs, options.rule, data, held_out=_held_out(runs, options))
    table = Table(title=str(runs.path), caption=f"Rule {selection.rule}: {selection.protocol}. No simulator was used.")
    for column in ("member", "checkpoint", "score"):
        table.add_column(column, justify="left" if column == "member" else "right")
    for choice in selection.choices:
        score = choice.scores[list(selection.steps).index(choice.step)]
        table.add_row(choice.member, f"{choice.step:,}", f"{score:.4g}")
    Console().print(table)
    return {"run": str(runs.path), **selection.to_json()}


def _held_out(runs: Runs, options: Select) -> Transitions | None:
    from dr3.collect import load

    if options.held_out is None:
        return None
    source = options.held_out.replace("{world}", runs.config["data"]["world"] or "")
    return load(source, discount=runs.members[0].method.discount)


# --- Measuring the rules ---


def _measure(opened: Sequence[Runs], options: Select) -> dict[str, Any]:
    import sys

    from dr3.diagnostics.study import to_json, trials

    found: list[Trial] = []
    for number, runs in enumerate(opened, start=1):
        found += trials(runs, options.rules, lambda runs: _held_out(runs, options), gradients=options.gradients)
        print(f"{number} of {len(opened)} runs", file=sys.stderr, flush=True)
    summary = {"rules": _rules(found), "verdicts": _verdicts(found)}
    _print_rules(summary["rules"], found, options)
    _print_verdicts(summary["verdicts"])
    return {"held_out": options.held_out, **summary, "trials": [to_json(trial) for trial in found]}


def _rules(found: Sequence[Trial]) -> dict[str, Any]:
    """Means with 95 % intervals: regret as a share of the best return seen in the world; how much less of it there is
    than with a checkpoint drawn at random, member by member; and the rank correlation of scores and returns.
    """
    import numpy as np

    from dr3.diagnostics.study import as_matrix, best_returns
    from dr3.stats import interval, mean

    scale = best_returns(found)
    rng = np.random.default_rng(0)

    def summary(number: Any) -> list[float] | None:
        matrix = as_matrix(found, number)
        matrix = matrix[:, ~np.isnan(matrix).all(axis=0)]
        if not matrix.size:
            return None
        of = interval(matrix, mean, rng, replicates=10_000, missing="ignore")
        return [of.estimate, of.lower, of.upper]

    rows = {
        rule: {
            "regret": summary(lambda trial, rule=rule: trial.regret(rule) / scale[trial.task]),
            "gain": summary(lambda trial, rule=rule: (trial.regret_of_any() - trial.regret(rule)) / scale[trial.task]),
            "correlation": summary(lambda trial, rule=rule: trial.correlation(rule)),
        }
        for rule in found[0].scores
    }
    rows["any checkpoint"] = {
        "regret": summary(lambda trial: trial.regret_of_any() / scale[trial.task]),
        "gain": None,
        "correlation": None,
    }
    return rows


def _verdicts(found: Sequence[Trial]) -> dict[str, Any]:
    from dr3.diagnostics.study import outcomes

    return {name: {"dropped": of.dropped, "counted": of.counted} for name, of in outcomes(found).items()}


def _print_rules(rows: dict[str, Any], found: Sequence[Trial], options: Select) -> None:
    from rich.console import Console
    from rich.table import Table

    held_out = f"held-out data {options.held_out}" if options.held_out else "no held-out data"
    table = Table(
        title=f"Rules over {len(found)} members",
        caption=f"Regret: share of the best return seen in the world that is lost. Means, 95 % intervals; {held_out}.",
    )
    for column in ("rule", "regret", "gain over any checkpoint", "rank correlation"):
        table.add_column(column, justify="left" if column == "rule" else "right")
    for rule, row in rows.items():
        table.add_row(rule, *[_interval(row[name]) for name in ("regret", "gain", "correlation")])
    Console().print(table)


def _interval(limits: list[float] | None) -> str:
    return "" if limits is None else f"{limits[0]:.2f} ({limits[1]:.2f}, {limits[2]:.2f})"


def _print_verdicts(rows: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Was a sign followed by a drop in true return?")
    for column in ("first checkpoint with", "followed by a drop", "of"):
        table.add_column(column, justify="left" if column == "first checkpoint with" else "right")
    for name, row in rows.items():
        share = f"{row['dropped'] / row['counted']:.0%}" if row["counted"] else "-"
        table.add_row(name, f"{row['dropped']} ({share})", str(row["counted"]))
    Console().print(table)
