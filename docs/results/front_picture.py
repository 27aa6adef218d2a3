"""The picture of the front page, from the run of its ten lines of Python:

python docs/results/front_picture.py runs/first --picture docs/images/dr3.png
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from matplotlib.figure import Figure

import dr3
from dr3.reports import style
from dr3.reports.compare import panels

TITLES = {
    "dot product": "feature dot product φ(s, a)·φ(s', a')",
    "return": "exact return of the greedy policy",
}


@dataclass(frozen=True)
class Options:
    """What to draw, and where."""

    run: tyro.conf.Positional[Path]
    """The folder of the run."""

    picture: Path
    """The picture to write."""


def main(options: Options) -> None:
    found = {panel.title: panel for panel in panels(dr3.open(options.run))}
    with style.style():
        figure = Figure(figsize=(9.0, 2.4), layout="constrained")
        for axis, (name, title) in zip(figure.subplots(1, 2), TITLES.items(), strict=True):
            colour = style.colours(found[name].lines)
            for label, (steps, values) in found[name].lines.items():
                axis.fill_between(
                    steps, values.min(axis=0), values.max(axis=0), color=colour[label], alpha=0.18, linewidth=0
                )
                axis.plot(steps, np.median(values, axis=0), color=colour[label], linewidth=2.2, label=label)
            axis.set_yscale("log" if found[name].log else "linear")
            axis.set_title(title)
            axis.set_xlabel("gradient updates")
            axis.grid(visible=False, axis="x")
        figure.axes[1].legend(frameon=False, loc="upper right")
        options.picture.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(options.picture)


if __name__ == "__main__":
    main(tyro.cli(Options))
