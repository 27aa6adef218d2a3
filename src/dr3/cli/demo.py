"""`dr3 demo`"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dr3.cli.parsing import parse, print_json
from dr3.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dr3.paper.demonstration import Demonstration
    from dr3.paper.experiments import Experiment, Result


@dataclass(frozen=True)
class Demo:
    """The paper's gridworld evidence, and DR3 on four gridworlds and the data of a game: four findings, with pictures.

    example: dr3 demo --out demo
    """

    out: Path = Path("demo")
    """Where runs, evidence, pictures and findings.json go. What has evidence there is not trained again."""

    json: bool = False
    """Print the numbers as JSON, and nothing else, on standard output."""

    full: bool = False
    """The paper's own network, (1024, 1024), and longer training: hours instead of minutes on two cores."""

    smoke: bool = False
    """A few updates of a tiny network, to see that everything runs; its findings mean nothing."""


def main(arguments: list[str]) -> int:
    options = parse(Demo, arguments, prog="dr3 demo", description=Demo.__doc__ or "")

    if options.full and options.smoke:
        raise UserError("--full is the largest demo and --smoke the smallest; choose one of them.")

    from dr3.files import for_json, write_json
    from dr3.paper.demonstration import FULL, QUICK, SMOKE, demonstrate, experiments
    from dr3.paper.experiments import Plan
    from dr3.reports.curves import check_picture

    sizes = FULL if options.full else SMOKE if options.smoke else QUICK
    out = options.out / f"{'x'.join(map(str, sizes.gridworlds.hidden))}-{sizes.gridworlds.updates}"
    check_picture(out / "dr3.png")
    began = time.monotonic()
    if not options.json:
        _introduce(sizes)
    # The scale says that its verdicts mean something: --smoke says itself that they do not.
    plan = Plan(experiments(sizes), "laptop", out / "data", out)
    try:
        with _progress() as finished:
            found = demonstrate(plan, finished)
    except (KeyboardInterrupt, SystemExit):
        print("Stopped, everything saved; the same command goes on from there.", file=sys.stderr)
        raise
    record = {
        "sizes": asdict(sizes),
        "seconds": round(time.monotonic() - began, 1),
        "findings": [asdict(one) for one in found],
    }
    record = for_json(record)
    write_json(out / "findings.json", record)
    if options.json:
        print_json(record)
    else:
        pictures = [plan.folder(one) / "figure.png" for one in plan.experiments]
        _print(plan.experiments, found, pictures, record)
    return 0


def _introduce(sizes: Demonstration) -> None:
    size = sizes.gridworlds
    paper = "" if size.hidden == (1024, 1024) else " (the paper's is 1024 x 1024: dr3 demo --full)"
    print(
        f"256 logged transitions of a gridworld, a network of {' x '.join(map(str, size.hidden))} units{paper}, "
        f"{size.updates:,} updates, {size.seeds} data sets with weights of their own; with and without DR3 "
        f"{sizes.dr3.seeds} data sets of each of four gridworlds, {sizes.dr3.updates:,} updates; then 10,000 "
        f"transitions of MinAtar's Breakout, {sizes.breakout_updates:,} updates."
    )


@contextmanager
def _progress() -> Generator[Callable[[int, int], None]]:
    """Something to tell that `done` of `of` runs are finished: a bar on a terminal, lines elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done, of: print(f"{done} of {of} runs", file=sys.stderr, flush=True) if done % 6 == 0 else None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def _print(
    experiments: Sequence[Experiment], found: Sequence[Result], pictures: Sequence[Path], record: dict[str, Any]
) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_lines=True)
    for column in ("the paper's claim", "verdict", "what came out"):
        table.add_column(column)
    for experiment, one in zip(experiments, found, strict=True):
        said = "\n".join(filter(None, [*(answer.sentence for answer in one.answers), one.note]))
        table.add_row(escape(experiment.claim), one.verdict, escape(said))  # dr3[minatar]
    console = Console()
    console.print(table)
    print(f"{record['seconds']:.0f} s. The rules behind the verdicts are in findings.json. Pictures:")
    for picture in pictures:
        print(f"  {picture}")
