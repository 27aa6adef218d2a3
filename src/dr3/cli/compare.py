"""`dr3 compare METHOD …`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dr3.cli.parsing import print_json
from dr3.cli.train import Run, parse_with_method, train_with
from dr3.progress import plain_console

if TYPE_CHECKING:
    from dr3.reports.compare import Side

EXAMPLES = """\
examples:

dr3 compare dqn --data grid16smoothobs --steps 5000 --seeds 5

dr3 compare cql --data logged.npz --regularizer none dr3:0.03 dr3:0.03:stop_gradient=next label-noise:0.03 norm:0.03"""


@dataclass(frozen=True)
class CompareOptions(Run):
    """What to train on, how long, and what to compare."""

    regularizer: tuple[str, ...] = ("none", "dr3:0.03")
    """What to train with, the first being what the others are measured against: none, dr3, label-noise, srank, norm."""

    seeds: int = 5
    """Members with seeds 0, 1, … for each regularizer."""

    json: bool = False
    """Print the numbers as JSON, and nothing else."""

    picture: Path | None = None
    """Draw the curves here; by default comparison.png in the run folder."""


def main(arguments: list[str]) -> int:
    chosen = parse_with_method("compare", CompareOptions, arguments, EXAMPLES)
    if chosen is None:
        return 0

    from dr3.files import write_json
    from dr3.reports.compare import as_json, compare, panels
    from dr3.reports.curves import check_picture, draw_bands

    options: CompareOptions = chosen.run
    if options.picture is not None:
        check_picture(options.picture)
    runs = train_with(options, chosen.method)
    sides = compare(runs)
    record = as_json(runs, sides)
    write_json(runs.path / "comparison.json", record)
    picture = options.picture or runs.path / "comparison.png"
    draw_bands(panels(runs), picture, caption="lines: medians over seeds; bands: their middle half", columns=3)
    if options.json:
        print_json(record)
    else:
        _print(runs, sides, picture)
    return 0


def _print(runs: Any, sides: list[Side], picture: Path) -> None:

    title = f"{runs.members[0].method.name} on {runs.config.data.name}, step {runs.status['step']:,}"
    console = plain_console()
    if sides[0].final is not None:
        rows = [_returns(side) for side in sides]
        console.print(_table(f"{title}, returns", ("regularizer", "final", "gain", "average", "gain"), rows))
        seeds = sides[0].seeds
        means = f"means of {seeds} seeds, 95 % bootstrap intervals" if seeds > 1 else "one seed each, so no intervals"
        console.print(f"Gains are over the first row: {means}.\n")
    names = list(sides[0].measured)
    rows = [[*(f"{side.measured[name]:.4g}" for name in names), f"{side.diverged} of {side.seeds}"] for side in sides]
    rows = [[side.regularizer, *row] for side, row in zip(sides, rows, strict=True)]
    console.print(_table(f"{title}, medians", ("regularizer", *names, "diverged"), rows))
    console.print(f"Curves: {picture}\nEverything is in {runs.path}", soft_wrap=True)


def _table(title: str, columns: tuple[str, ...], rows: list[list[str]]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        first = column == "regularizer"
        table.add_column(column, justify="left" if first else "right", overflow="fold", no_wrap=not first)
    for row in rows:
        table.add_row(*row)
    return table


def _returns(side: Side) -> list[str]:
    words = [side.regularizer]
    for score in (side.final, side.average):
        if score is not None:
            words.append(f"{score.mean:.4g}")
            words.append("" if score.gain is None else score.gain.text(_signed))
    return words


def _signed(gain: float) -> str:
    """Two digits, or all before the point: +123 takes less room than +1.2e+02."""
    return f"{gain:+.0f}" if abs(gain) >= 99.5 else f"{gain:+.2g}"
