"""`dr3 reproduce`: every figure and table of the paper."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from dr3.cli.parsing import parse
from dr3.cli.sweep import EngineChoice
from dr3.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from dr3.paper.experiments import Experiment, Plan, Result

ABOUT = """\
Run the paper's figures and tables again: data, runs, statistics, the picture, and whether the claim shows.

--scale smoke takes seconds and means nothing; laptop makes its own data and takes minutes for each; paper is the
paper's own size, on its data. Experiments share runs, and what is there already is not made again.

examples:

dr3 reproduce --list

dr3 reproduce table-1 figure-4

dr3 reproduce --all --scale paper --data /shared/data --dry-run

dr3 reproduce --all --scale paper --data /shared/data --out /shared/paper --engine ray --address auto --gpus 0.25

dr3 reproduce --record docs/reproduction.md"""


@dataclass(frozen=True)
class Reproduce:
    """What to run, and where it goes."""

    where: EngineChoice

    ids: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[ID [ID ...]]")] = ()
    """Figures and tables by id: figure-1, figure-A.3, table-F.4."""

    all: bool = False
    """All forty."""

    scale: Literal["smoke", "laptop", "paper"] = "laptop"
    """How large."""

    data: Path = Path("data")
    """Where data lies, and where data goes that is made here."""

    out: Path = Path("reproduction")
    """OUT/SCALE/ID gets result.json, figure.png and report.html; OUT/SCALE/runs all runs."""

    list: bool = False
    """Only list them: claim, needs, last result in OUT, and the time it took; else how many updates it would make."""

    dry_run: bool = False
    """Only print the grid, hyperparameters, data and an estimate of the time."""

    record: Path | None = None
    """Only write this page (Markdown) from the results in OUT, with their pictures beside it."""


def main(arguments: list[str]) -> int:
    options: Reproduce = parse(Reproduce, arguments, prog="dr3 reproduce", description=ABOUT)

    from dr3.paper.experiments import EXPERIMENTS, Plan, find, reproduce, write_record

    _check_choice(options)
    engine = options.where.build()
    if options.list:
        _print_list(options.data, options.out)
        return 0
    if options.record is not None:
        results = write_record(options.record, options.out, options.scale)
        print(f"{options.record} holds {len(results)} results of {len(EXPERIMENTS)}.")
        return 0
    plan = Plan(tuple(find(options.ids or EXPERIMENTS)), options.scale, options.data, options.out)
    if options.dry_run:
        from dr3.cli.reproduction_plan import print_plan

        print_plan(plan)
        return 0
    results = reproduce(plan, engine=engine, told=_tell)
    _print_verdicts(plan, results)
    return 1 if any(result.failed for result in results) else 0


def _check_choice(options: Reproduce) -> None:
    if options.list or options.record is not None:
        if options.ids or options.all or options.dry_run or (options.list and options.record is not None):
            raise UserError("--list and --record are about all figures and tables, and do nothing else: say one alone.")
    elif options.all == bool(options.ids):
        raise UserError("Name figures and tables by their ids, or all of them with --all; --list names them.")


def _tell(experiment: Experiment, result: Result) -> None:
    print(f"{experiment.id}: {result.verdict}", file=sys.stderr, flush=True)


def _print_verdicts(plan: Plan, results: list[Result]) -> None:
    table = _table("id", "claim", "verdict", "why", "time")
    for experiment, result in zip(plan.experiments, results, strict=True):
        table.add_row(experiment.id, experiment.claim, result.verdict, result.why, f"{result.seconds:,.0f} s")
    _print(table)
    print(f"Reports: {os.path.join(plan.out, plan.scale, '*', 'report.html')}")


def _print_list(data: Path, out: Path) -> None:
    from dr3.paper.experiments import EXPERIMENTS, SCALES, Folders, Result

    table = _table("id", "claim", "needs", "time", "last result")
    for experiment in EXPERIMENTS.values():
        known, last = {}, {}
        for scale in SCALES:
            try:
                result = Result.read(out / scale / experiment.id)
            except UserError as damage:
                last[scale] = str(damage)
                continue
            if result is not None:
                known[scale], last[scale] = result, result.verdict
        needs = experiment.needs or {}
        table.add_row(
            experiment.id,
            experiment.claim,
            "\n".join(f"{scale}: {needs[scale]}" for scale in SCALES) if needs else "nothing",
            "\n".join(
                f"{scale}: {known[scale].seconds:,.0f} s"
                if scale in known
                else f"{scale}: {experiment.at(scale, Folders(data, out / scale / 'runs')).updates:,} updates"
                for scale in SCALES
            ),
            "\n".join(f"{scale}: {words}" for scale, words in last.items()),
        )
    _print(table)


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_lines=True)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    return table


def _print(table: Table) -> None:
    from rich.console import Console

    Console().print(table, highlight=False)
