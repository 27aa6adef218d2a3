"""`dr3 select RUN …`"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from dr3.cli.parsing import parse, print_json
from dr3.errors import UserError
from dr3.progress import plain_console

if TYPE_CHECKING:
    from dr3.data import Transitions
    from dr3.diagnostics import Ranking, Selection
    from dr3.runs import Runs


MOST_SHOWN = 20  # lines of a ranking on the screen


@dataclass(frozen=True)
class Select:
    """Choose a checkpoint without a simulator, by a declared rule; or measure the rules where returns are known.

    fqe, td-error and tournament rank all members and checkpoints of all runs together, with intervals, and say where
    they cannot be told apart; the other rules choose a checkpoint for each member. What is chosen is in selection.json
    of the run folder, and export, play and runs.policy() take it from there.

    Exit code 0: something was chosen, 1: not, or a member has no checkpoint that qualifies.

    examples:

    dr3 select runs/first

    dr3 select runs/cql runs/cql-dr3 --rule tournament

    dr3 select runs/first --rule td-error --held-out validation.npz

    dr3 select --measure runs/* --held-out {world}:seed=100 --json > selection.json
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN...")]
    """Run folders."""

    rule: str | None = None
    """How to choose: fqe (the default), td-error or tournament; or last, step:N, coadaptation, healthy, q, srank."""

    keep: Literal["surest", "one-error", "earliest", "largest"] = "surest"
    """Which of those that a ranking cannot tell apart and can tell from the logged policy: the surest to be better than
    that, the earliest within one standard error of the largest score, the earliest, or the one with the largest."""

    data: str | None = None
    """What the runs were trained on, where it is not where it was; {world} stands for the world of a run's own data."""

    held_out: str | None = None
    """Data that the runs were not trained on, to judge by; by default the episodes that they held out when they were
    trained, else what they were trained on. {world} as in --data."""

    measure: bool = False
    """Compare all rules with the true returns of evaluated runs: regret and rank correlation, with intervals."""

    rules: tuple[str, ...] = ()
    """With --measure: which rules, by default all but step:N. FQE fits a critic to every checkpoint: on images that
    takes by far the longest."""

    gradients: bool = True
    """With --measure: the spectrum over all parameters, which takes long for large networks; else the last layer's."""

    json: bool = False
    """Print the numbers as JSON, and nothing else."""


def main(arguments: list[str]) -> int:
    options = parse(Select, arguments, prog="dr3 select", description=Select.__doc__ or "")
    _refuse_what_means_nothing(options)

    from dr3.diagnostics import RANKINGS
    from dr3.runs import Runs

    opened = [Runs(path) for path in options.runs]
    if options.measure:
        from dr3.cli.rule_study import measure_rules

        record, code = measure_rules(opened, options), 0
    elif (options.rule or "fqe") in RANKINGS:
        record, code = _rank(opened, options)
    else:
        record, code = _choose(opened, options)
    if options.json:
        print_json(record)
    return code


def _refuse_what_means_nothing(options: Select) -> None:
    from dr3.diagnostics import RANKINGS
    from dr3.diagnostics.selection import READ_HELD_OUT

    if not options.runs:
        raise UserError("dr3 select needs at least one run folder.")
    if options.measure and options.rule is not None:
        raise UserError("--rule chooses by one rule, and --measure compares several: name those with --rules.")
    if not options.measure and options.rules:
        raise UserError("--rules says what --measure compares: add --measure, or choose by one rule with --rule.")
    if not options.measure and not options.gradients:
        raise UserError("--no-gradients is for --measure.")
    if options.keep != "surest" and (options.measure or (options.rule or "fqe") not in RANKINGS):
        raise UserError(f"--keep is for the rankings: {', '.join(RANKINGS)}; --measure compares all ways to keep one.")
    named = options.rules or tuple(filter(None, [options.rule]))
    judging = {*READ_HELD_OUT, *RANKINGS}
    if options.held_out is not None and named and not set(named) & judging:
        raise UserError(f"--held-out is for the rules {', '.join(sorted(judging))}, not for {', '.join(named)}.")


def table_for(runs: Runs, source: str | None) -> Transitions | None:
    """What `--data` or `--held-out` names, for one run."""
    from dr3.data import load
    from dr3.envs import known_world

    if source is None:
        return None
    world = runs.config.data.world
    if "{world}" in source and world is None:
        raise UserError(f"{source}: {runs.path} does not say which world its data are from; write out the name.")
    if world is not None and "{world}" in source:
        source = source.replace("{world}", known_world(world))
    return load(source, discount=runs.config.data.discount)


def _rank(opened: Sequence[Runs], options: Select) -> tuple[dict[str, Any], int]:
    """All candidates in one ranking: what to record, and the exit code."""
    from dr3.diagnostics import rank

    first = opened[0]
    table = table_for(first, options.held_out) or table_for(first, options.data)
    ranking = rank(opened, options.rule or "fqe", table, keep=options.keep)
    if not options.json:
        _print_ranking(ranking)
    return ranking.to_json(), 1 if ranking.chosen is None else 0


def _print_ranking(ranking: Ranking) -> None:
    from rich.table import Table

    from dr3.diagnostics import RANKINGS

    table = Table(
        title=f"Rule {ranking.rule}: {RANKINGS[ranking.rule]}",
        caption=f"Judged by {ranking.judged_by}; 95 % intervals; * cannot be told from the best, > is kept. "
        "No simulator used.",
    )
    for column in ("", "member", "checkpoint", "score"):
        table.add_column(column, justify="right" if column == "score" else "left")
    tied = {one.name for one in ranking.tied}
    shown = ranking.order[:MOST_SHOWN]
    if ranking.chosen is not None and ranking.chosen not in shown:
        shown.append(ranking.chosen)
    for one in shown:
        score = ranking.scores.get(one.name)
        told = ranking.reasons.get(one.name, "") if score is None else score.text("{:.4g}".format)
        mark = ">" if one is ranking.chosen else "*" if one.name in tied else ""
        table.add_row(mark, one.label, one.name, told)
    plain_console().print(table)
    if (more := len(ranking.order) - len(shown)) > 0:
        print(f"{more} more are in selection.json.")
    if ranking.logged is not None:
        print(f"The policy that logged is worth {ranking.logged.text('{:.4g}'.format)}.")
    print(ranking.sentence)


def _choose(opened: Sequence[Runs], options: Select) -> tuple[list[dict[str, Any]], int]:
    """What to record of every run, and the exit code."""
    from dr3.diagnostics import select
    from dr3.reports.kept import kept_fqe

    assert options.rule is not None
    record, code = [], 0
    for runs in opened:
        held_out = table_for(runs, options.held_out)
        selection = select(runs, options.rule, table_for(runs, options.data), held_out=held_out, evaluating=kept_fqe)
        if not options.json:
            _print(runs, selection)
        record.append({"run": str(runs.path), **selection.to_json()})
        if any(choice.step is None for choice in selection.choices):
            code = 1
    return record, code


def _print(runs: Runs, selection: Selection) -> None:
    import numpy as np
    from rich.table import Table

    from dr3.diagnostics.selection import HAVE_SCORES

    table = Table(title=str(runs.path), caption=f"Rule {selection.rule}: {selection.protocol}. No simulator was used.")
    scored = selection.rule in HAVE_SCORES
    for column in ("member", "checkpoint", *(["score"] if scored else [])):
        table.add_column(column, justify="left" if column == "member" else "right")
    without = []
    for choice in selection.choices:
        if choice.step is None:
            table.add_row(choice.member, "none")
            finite = np.isfinite(choice.scores).any()
            why = "no checkpoint qualifies by this rule" if finite else "no checkpoint has a critic that is finite"
            without.append(f"{choice.member}: {why}.")
        else:
            score = choice.scores[list(selection.steps).index(choice.step)]
            table.add_row(choice.member, f"{choice.step:,}", *([f"{score:.4g}"] if scored else []))
    plain_console().print(table)
    for sentence in without:
        print(sentence)
