"""`dr3 reproduce`: every figure and table of the paper."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from dr3.cli.parsing import parse
from dr3.cli.sweep import EngineChoice
from dr3.errors import UserError
from dr3.progress import plain_console

if TYPE_CHECKING:
    from rich.table import Table

    from dr3.paper.experiments import Experiment, Plan, Result

ABOUT = """\
Run the paper's figures and tables again: data, runs, statistics, the picture, and whether the claim shows.

--scale smoke takes seconds and means nothing; laptop makes its own data and takes a day for all; paper is the
paper's own size, on its data. Experiments run in the order in which they are named. They share runs; each finished
population leaves a small bundle of evidence, and what has one is not trained again.

examples:

dr3 reproduce --list

dr3 reproduce --list figure-4

dr3 reproduce table-1 figure-4

dr3 reproduce --all --scale paper --data /shared/data --dry-run

dr3 reproduce --all --scale paper --data /shared/data --out /shared/paper --engine ray --address auto --gpus 0.25

dr3 reproduce fall --worlds "MinAtar Breakout"

dr3 reproduce figure-4 --from-evidence

dr3 reproduce --keep runs/tuning

dr3 reproduce --record docs/reproduction.md"""


@dataclass(frozen=True)
class Reproduce:
    """What to run, and where it goes."""

    where: EngineChoice

    ids: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[ID [ID ...]]")] = ()
    """Figures and tables by id: figure-1, figure-A.3, table-F.4; and fall, controls, map, online: what the paper leaves
    open."""

    all: bool = False
    """All forty, and what the paper leaves open."""

    arms: tuple[str, ...] = ()
    """Train only these now, by their labels: "DQN" "DQN + DR3". All, if none are named."""

    worlds: tuple[str, ...] = ()
    """The same by worlds: "MinAtar Breakout"."""

    scale: Literal["smoke", "laptop", "paper"] = "laptop"
    """How large."""

    data: Path = Path("data")
    """Where data lies, and where data goes that is made here."""

    out: Path = Path("reproduction")
    """OUT/SCALE/ID gets result.json, figure.png and report.html; OUT/SCALE/runs all runs."""

    evidence: Path | None = None
    """Where bundles of evidence lie, EVIDENCE/SCALE/NAME.json: by default docs/evidence in a checkout, elsewhere and at
    smoke scale OUT/evidence."""

    from_evidence: bool = False
    """Train nothing: judge again by the evidence there is."""

    keep: Path | None = None
    """Only make bundles of evidence, in EVIDENCE/sweeps/NAME, of the finished tasks of this sweep."""

    list: bool = False
    """Only list them with their last results in OUT; with ids also claims, needs, and how long they took or how many
    updates they would make."""

    dry_run: bool = False
    """Only print the grid, hyperparameters, data and an estimate of the time."""

    record: Path | None = None
    """Only write this page (Markdown) from evidence alone, with its pictures beside it."""

    @property
    def kept(self) -> Path:
        """Where evidence lies."""
        docs = Path(__file__).parents[3] / "docs"
        return self.evidence or (
            docs / "evidence" if self.scale != "smoke" and docs.is_dir() else self.out / "evidence"
        )


def main(arguments: list[str]) -> int:
    options: Reproduce = parse(Reproduce, arguments, prog="dr3 reproduce", description=ABOUT)

    from dr3.paper.experiments import ALL, Keeping, Plan, find, judged, keep_sweep, reproduce, write_record

    _check_choice(options)
    engine = options.where.build()
    if options.list:
        _print_list(options)
        return 0
    if options.keep is not None:
        out = options.kept / "sweeps" / options.keep.resolve().name
        print(f"{out} holds {len(keep_sweep(options.keep, out, Keeping()))} bundles of evidence.")
        return 0
    plan = Plan(
        tuple(find(options.ids or ALL)),
        options.scale,
        options.data,
        options.out,
        options.kept,
        options.arms,
        options.worlds,
    )
    _check_names(plan)
    if options.record is not None:
        results = write_record(options.record, plan)
        print(f"{options.record} holds {len(results)} results of {len(ALL)}.")
        return 0
    if options.dry_run:
        from dr3.cli.reproduction_plan import print_plan

        print_plan(plan)
        return 0
    results = (
        judged(plan, reported=_report_verdict)
        if options.from_evidence
        else reproduce(plan, engine=engine, reported=_report_verdict)
    )
    _print_verdicts(plan, results)
    return 1 if any(result.failed for result in results) else 0


def _check_choice(options: Reproduce) -> None:
    alone = [options.list, options.record is not None, options.keep is not None]
    if any(alone):
        named = bool(options.ids) and not options.list
        if named or options.all or options.dry_run or options.from_evidence or sum(alone) > 1:
            raise UserError("--list, --record and --keep do nothing else, and only --list takes ids: say one alone.")
    elif options.all == bool(options.ids):
        raise UserError("Name figures and tables by their ids, or all of them with --all; --list names them.")


def _check_names(plan: Plan) -> None:
    """`--arms` and `--worlds` that no experiment has would train nothing, and say nothing."""
    arms = [arm for design in plan.designs.values() for arm in design.arms]
    for flag, named, known in (
        ("--arms", plan.arms, {arm.label for arm in arms}),
        ("--worlds", plan.worlds, {arm.world for arm in arms}),
    ):
        if unknown := [name for name in named if name not in known]:
            choice = ", ".join(sorted(known))
            raise UserError(f"{flag}: {unknown[0]!r} is not in these experiments; they have {choice}.")


def _report_verdict(experiment: Experiment, result: Result) -> None:
    print(f"{experiment.id}: {result.verdict}", file=sys.stderr, flush=True)


def _print_verdicts(plan: Plan, results: list[Result]) -> None:
    table = _table("id", "claim", "verdict", "why", "time")
    for experiment, result in zip(plan.experiments, results, strict=True):
        table.add_row(experiment.id, experiment.claim, result.verdict, result.why, f"{result.seconds:,.0f} s")
    _print(table)
    print(f"Reports: {os.path.join(plan.out, plan.scale, '*', 'report.html')}")


def _print_list(options: Reproduce) -> None:
    """One word for each in two columns, which fit on a screen of 80 x 40; with ids, everything about those."""
    from dr3.paper.experiments import ALL, find

    if options.ids:
        _print_details(find(options.ids), options.data, options.out)
        return
    words, damages = [], []
    for experiment in find(ALL):
        last = _last(options.out, options.scale, experiment.id)
        damages += [last] if isinstance(last, str) else []
        title = textwrap.shorten(experiment.title, 26, placeholder=" …")
        verdict = title if last is None else "damaged" if isinstance(last, str) else last.verdict.upper()
        words.append(f"{experiment.id:<13}{verdict:<27}")
    print(f"Verdicts at {options.scale} scale in {options.out}; titles of what has none:\n")
    half = -(-len(words) // 2)
    for row in range(half):
        print("".join(words[row::half]).rstrip())
    print("\ndr3 reproduce --list ID says what one claims, needs and takes.", *damages, sep="\n")


def _last(out: Path, scale: str, id: str) -> Result | str | None:
    """The last result, None if there is none, or a sentence about one that cannot be read."""
    from dr3.paper.experiments import Result

    try:
        return Result.read(out / scale / id)
    except UserError as damage:
        return str(damage)


def _print_details(experiments: Iterable[Experiment], data: Path, out: Path) -> None:
    from dr3.paper.experiments import SCALES, Folders

    table = _table("id", "claim", "needs", "time", "last result")
    for experiment in experiments:
        last = {scale: _last(out, scale, experiment.id) for scale in SCALES}
        needs = experiment.needs or {}
        times = {
            scale: f"{experiment.at(scale, Folders(data, out / scale / 'runs')).updates:,} updates"
            if result is None or isinstance(result, str)
            else f"{result.seconds:,.0f} s"
            for scale, result in last.items()
        }
        verdicts = {s: r if isinstance(r, str) else r.verdict for s, r in last.items() if r is not None}
        table.add_row(
            experiment.id,
            experiment.claim,
            "\n".join(f"{scale}: {needs[scale]}" for scale in SCALES) if needs else "nothing",
            *("\n".join(f"{scale}: {word}" for scale, word in words.items()) for words in (times, verdicts)),
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

    plain_console().print(table, highlight=False)
