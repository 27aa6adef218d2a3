"""`dr3 demo`"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dr3.cli.parsing import parse
from dr3.errors import UserError

if TYPE_CHECKING:
    from dr3.paper.demonstration import Demonstration
    from dr3.paper.findings import Finding


@dataclass(frozen=True)
class Demo:
    """The paper's gridworld evidence, and DR3 on the data of a game, as four findings with pictures and numbers.

    example: dr3 demo --json findings.json
    """

    out: Path = Path("demo")
    """Where runs, pictures and findings.json go. Runs that are already there are not made again."""

    json: Path | None = None
    """Write the numbers here as well."""

    full: bool = False
    """The paper's own network, (1024, 1024), and longer training: hours instead of minutes on two cores."""

    smoke: bool = False
    """A few updates of a tiny network, to see that everything runs; its findings mean nothing."""


def main(arguments: list[str]) -> int:
    options = parse(Demo, arguments, prog="dr3 demo", description=Demo.__doc__ or "")

    if options.full and options.smoke:
        raise UserError("--full is the largest demo and --smoke the smallest; choose one of them.")

    from dr3.files import check_file, write_json
    from dr3.paper.demonstration import FULL, QUICK, SMOKE, findings
    from dr3.paper.demonstration_pictures import draw_findings
    from dr3.reports.curves import check_picture

    sizes = FULL if options.full else SMOKE if options.smoke else QUICK
    out = options.out / f"{'x'.join(map(str, sizes.gridworlds.hidden))}-{sizes.gridworlds.updates}"
    check_picture(out / "dr3.png")
    if options.json is not None:
        check_file(options.json)
    began = time.monotonic()
    _introduce(sizes)
    try:
        with _progress() as finished:
            found = findings(sizes, out, finished)
    except (KeyboardInterrupt, SystemExit):
        print("Stopped, everything saved; the same command goes on from there.", file=sys.stderr)
        raise
    pictures = draw_findings(found, sizes, out)
    record = {
        "size": asdict(sizes.gridworlds),
        "breakout_updates": sizes.breakout_updates,
        "seconds": round(time.monotonic() - began, 1),
        "findings": [{key: getattr(one, key) for key in _WRITTEN} for one in found],
    }
    for file in filter(None, (out / "findings.json", options.json)):
        write_json(file, record)
    _print(found, pictures, record)
    return 0


_WRITTEN = ("id", "claim", "rule", "holds", "sentence", "numbers")


def _introduce(sizes: Demonstration) -> None:
    size = sizes.gridworlds
    paper = "" if size.hidden == (1024, 1024) else " (the paper's is 1024 x 1024: dr3 demo --full)"
    print(
        f"256 logged transitions of a gridworld, a network of {' x '.join(map(str, size.hidden))} units{paper}, "
        f"{size.updates:,} updates, {size.seeds} seeds with data and weights of their own; then 10,000 transitions of "
        f"MinAtar's Breakout, {sizes.breakout_updates:,} updates."
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


def _print(found: list[Finding], pictures: list[Path], record: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_lines=True)
    for column in ("the paper's claim", "shows here", "what came out"):
        table.add_column(column)
    for one in found:
        table.add_row(escape(one.claim), "yes" if one.holds else "no", escape(one.sentence))  # dr3[minatar]
    console = Console()
    console.print(table)
    print(f"{record['seconds']:.0f} s. A claim shows by the rule that findings.json gives with the numbers. Pictures:")
    for picture in pictures:
        print(f"  {picture}")
