"""`dr3 compare METHOD …`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dr3.cli.train import Run, parse_with_method, train_as_told

if TYPE_CHECKING:
    from dr3.reports.compare import Score, Side

EXAMPLES = """\
examples:

dr3 compare dqn --data grid16smoothobs --steps 5000 --seeds 5

dr3 compare cql --data logged.npz --regularizer none dr3:0.03 dr3:0.03:stop_gradient=next label-noise:0.03 norm:0.03"""


@dataclass(frozen=True)
class Compared(Run):
    """What to train on, how long, and what to compare."""

    regularizer: tuple[str, ...] = ("none", "dr3:0.03")
    """What to train with, the first being what the others are measured against: none, dr3, label-noise, srank, norm."""

    seeds: int = 5
    """Members with seeds 0, 1, … for each regularizer."""

    json: Path | None = None
    """Write the numbers here as well as to comparison.json in the run folder."""

    picture: Path | None = None
    """Draw the curves here; by default comparison.png in the run folder."""


def main(arguments: list[str]) -> int:
    chosen = parse_with_method("compare", Compared, arguments, EXAMPLES)
    if chosen is None:
        return 0

    from dr3.reports.compare import as_json, compare, panels
    from dr3.reports.curves import draw

    options: Compared = chosen.run
    runs = train_as_told(options, chosen.method)
    sides = compare(runs)
    for file in filter(None, (runs.path / "comparison.json", options.json)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(as_json(runs, sides), indent=2) + "\n")
    picture = options.picture or runs.path / "comparison.png"
    draw(panels(runs), picture, caption="median over seeds, and the seeds")
    _print(runs, sides, picture)
    return 0


def _print(runs: Any, sides: list[Side], picture: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"{runs.members[0].method.name} on {runs.config['data']['name']}, step {runs.status['step']:,}"
    table = Table(title=title, caption="gains: mean over seeds against the first row, 95 % bootstrap interval")
    measured = list(sides[0].measured)
    tried = sides[0].final is not None
    returns = ("final return", "gain", "average return", "gain") if tried else ()
    for column in ("regularizer", *returns, *measured, "diverged"):
        table.add_column(column, justify="left" if column == "regularizer" else "right")
    for side in sides:
        words = [word for score in (side.final, side.average) if score is not None for word in _words(score)]
        numbers = [f"{side.measured[name]:.4g}" for name in measured]
        table.add_row(side.regularizer, *words, *numbers, f"{side.diverged} of {side.seeds}")
    console = Console()
    console.print(table)
    console.print(f"Curves: {picture}\nEverything is in {runs.path}", soft_wrap=True)


def _words(score: Score) -> tuple[str, str]:
    gain = score.gain
    return f"{score.mean:.4g}", "" if gain is None else f"{gain.estimate:+.3g} ({gain.lower:+.3g}, {gain.upper:+.3g})"
