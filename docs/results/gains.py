"""A picture of the gains in a page's tables: python docs/results/gains.py docs/results/minatar.md --picture gains.png

Every table with a column "gain" after "average: METHOD" is drawn: a panel for each world, a row for each method and
part of the data, a point with its 95 % interval for each replay.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tyro
from matplotlib.figure import Figure

from dr3.reports import style

FIRST_COLUMN = "average: "
GAIN = re.compile(r"^([+-][\d.]+) \(([+-][\d.]+), ([+-][\d.]+)\)$")
APART = 0.3  # of a row, between two replays


@dataclass(frozen=True)
class Options:
    """What to draw, and where."""

    page: tyro.conf.Positional[Path]
    """A page with tables."""

    picture: Path
    """The picture to write."""

    part: str = "1 %"
    """The part of the data in tables whose rows name none."""


@dataclass(frozen=True)
class Gain:
    """One row of a table: by how many percent the average over training is higher with DR3."""

    world: str
    row: str
    share: float
    low: float
    high: float


def main(options: Options) -> None:
    gains = list(gains_in(options.page.read_text(), options.part))
    worlds = list(dict.fromkeys(gain.world for gain in gains))
    rows = sorted(dict.fromkeys(gain.row for gain in gains), key=lambda row: row.split(",")[0])
    colour = style.colours(dict.fromkeys(row.split(",")[0] for row in rows))
    with style.style():
        figure = Figure(figsize=(1.6 + 2.4 * len(worlds), 1.3 + 0.3 * len(rows)), layout="constrained")
        panels = figure.subplots(1, len(worlds), squeeze=False, sharex=True)[0]
        for panel, world in zip(panels, worlds, strict=True):
            for number, row in enumerate(rows):
                found = [gain for gain in gains if (gain.world, gain.row) == (world, row)]
                for place, gain in enumerate(found):
                    height = number + APART * (place - (len(found) - 1) / 2)
                    ink = colour[row.split(",")[0]]
                    panel.plot([gain.low, gain.high], [height, height], color=ink, linewidth=3, alpha=0.35)
                    panel.plot(gain.share, height, "o", color=ink, markersize=4)
            panel.axvline(0, color="#777777", linewidth=1)
            panel.set_title(world)
            panel.set_yticks(range(len(rows)), rows if panel is panels[0] else [""] * len(rows))
            panel.set_ylim(len(rows) - 0.5, -0.5)
            panel.tick_params(axis="y", length=0)
            panel.grid(visible=False, axis="y")
            panel.locator_params(axis="x", nbins=5)
            panel.xaxis.set_major_formatter(lambda value, _: f"{value:+.0f} %" if value else "0")
        words = (
            "gain of the return averaged over training with DR3, of that without; dots: replays, bars: 95 % intervals"
        )
        figure.supxlabel(textwrap.fill(words, int(figure.get_figwidth() / 0.07)), fontsize=8.5)
        options.picture.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(options.picture, dpi=120)


def gains_in(page: str, part: str) -> Iterator[Gain]:
    method = without = gain = None
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        named = next((place for place, cell in enumerate(cells) if cell.startswith(FIRST_COLUMN)), None)
        if named is not None:
            method, without, gain = cells[named].removeprefix(FIRST_COLUMN), named, cells.index("gain")
        elif not cells:
            method = None
        elif method and without and gain and (found := GAIN.match(cells[gain])):
            *parts, world, _replay = [part, *cells[0].split(", ")][-3:]
            base, scale = float(cells[without]), 100
            yield Gain(world, f"{method}, {parts[0]}", *(scale * float(of) / base for of in found.groups()))


if __name__ == "__main__":
    main(tyro.cli(Options))
