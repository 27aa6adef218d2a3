"""`dr3 select RUN …`"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from dr3.cli.parsing import parse
from dr3.errors import UserError

if TYPE_CHECKING:
    from dr3.data import Transitions
    from dr3.diagnostics import Selection
    from dr3.runs import Runs


@dataclass(frozen=True)
class Select:
    """Choose a checkpoint without a simulator, by a declared rule; or measure the rules where returns are known.

    Exit code 0: every member has a checkpoint that qualifies, 1: one has none.

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
    """What the runs were trained on, where it is not where it was; {world} stands for the world of a run's own data."""

    held_out: str | None = None
    """Data that the runs were not trained on, for td-error and healthy; {world} as in --data."""

    measure: bool = False
    """Compare all rules with the true returns of evaluated runs: regret and rank correlation, with intervals."""

    rules: tuple[str, ...] = ()
    """With --measure: which rules, by default all but step:N. FQE fits a critic to every checkpoint: on images that
    takes by far the longest."""

    gradients: bool = True
    """With --measure: the spectrum over all parameters, which takes long for large networks; else the last layer's."""

    json: Path | None = None
    """Write what was chosen, or everything that was measured, to this file too."""


def main(arguments: list[str]) -> int:
    options = parse(Select, arguments, prog="dr3 select", description=Select.__doc__ or "")
    _refuse_what_means_nothing(options)

    from dr3.files import check_file, write_json
    from dr3.runs import Runs

    if options.json is not None:
        check_file(options.json)
    opened = [Runs(path) for path in options.runs]
    if options.measure:
        from dr3.cli.rule_study import measure_rules

        record, code = measure_rules(opened, options), 0
    else:
        record, code = _choose(opened, options)
    if options.json is not None:
        write_json(options.json, record)
    return code


def _refuse_what_means_nothing(options: Select) -> None:
    from dr3.diagnostics.selection import PROTOCOLS, READ_HELD_OUT

    if not options.runs:
        raise UserError("dr3 select needs at least one run folder.")
    if options.measure and options.rule is not None:
        raise UserError("--rule chooses by one rule, and --measure compares several: name those with --rules.")
    if not options.measure and options.rules:
        raise UserError("--rules says what --measure compares: add --measure, or choose by one rule with --rule.")
    if not options.measure and not options.gradients:
        raise UserError("--no-gradients is for --measure.")
    if not options.measure and options.rule is None:
        raise UserError(f"Say by which rule: --rule {', '.join(PROTOCOLS)}; docs/results/selection.md measures them.")
    named = options.rules or tuple(filter(None, [options.rule]))
    if options.held_out is not None and named and not set(named) & set(READ_HELD_OUT):
        raise UserError(f"--held-out is for the rules {' and '.join(READ_HELD_OUT)}, not for {', '.join(named)}.")


def table_for(runs: Runs, source: str | None) -> Transitions | None:
    """What `--data` or `--held-out` names, for one run."""
    from dr3.data import load

    if source is None:
        return None
    world = runs.config["data"]["world"]
    if "{world}" in source and world is None:
        raise UserError(f"{source}: {runs.path} does not say which world its data are from; write out the name.")
    return load(source.replace("{world}", world or ""), discount=runs.data_discount)


def _choose(opened: Sequence[Runs], options: Select) -> tuple[list[dict[str, Any]], int]:
    """What to record of every run, and the exit code."""
    from dr3.diagnostics import select
    from dr3.reports.kept import kept_fqe

    assert options.rule is not None
    record, code = [], 0
    for runs in opened:
        held_out = table_for(runs, options.held_out)
        selection = select(runs, options.rule, table_for(runs, options.data), held_out=held_out, evaluating=kept_fqe)
        _print(runs, selection)
        record.append({"run": str(runs.path), **selection.to_json()})
        if any(choice.step is None for choice in selection.choices):
            code = 1
    return record, code


def _print(runs: Runs, selection: Selection) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    table = Table(title=str(runs.path), caption=f"Rule {selection.rule}: {selection.protocol}. No simulator was used.")
    for column in ("member", "checkpoint", "score"):
        table.add_column(column, justify="left" if column == "member" else "right")
    without = []
    for choice in selection.choices:
        if choice.step is None:
            table.add_row(choice.member, "none", "")
            finite = np.isfinite(choice.scores).any()
            why = "no checkpoint qualifies by this rule" if finite else "no checkpoint has a critic that is finite"
            without.append(f"{choice.member}: {why}.")
        else:
            score = choice.scores[list(selection.steps).index(choice.step)]
            table.add_row(choice.member, f"{choice.step:,}", f"{score:.4g}")
    Console().print(table)
    for sentence in without:
        print(sentence)
