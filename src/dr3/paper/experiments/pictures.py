"""Pictures like the paper's: curves by world, scores over training, intervals, layers by checkpoints.

Each adds to the caption that it is given what its own lines, bars or colours mean.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dr3.errors import UserError
from dr3.paper.experiments.checks import STATISTICS, WORDS, compared
from dr3.paper.experiments.evidence import SCORE, Evidence, Measure, Place, words
from dr3.reports import style
from dr3.reports.curves import Panel, draw_bands
from dr3.stats import iqm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDEST = 4  # panels side by side
LINES = "lines: medians over seeds; bands: their middle half"
BARS = "bars: 95 % stratified bootstrap intervals"


@dataclass(frozen=True)
class Curves:
    """Metrics over training: a row of panels for each metric, a panel for each world; of one world all in a row."""

    metrics: tuple[str, ...]
    log: tuple[str, ...] = ()

    def __call__(self, evidence: Evidence, path: Path, caption: str) -> None:
        places = evidence.places()
        panels = [self._panel(evidence, metric, place) for metric in self.metrics for place in places]
        columns = min(len(places) if len(places) > 1 else len(panels), WIDEST)
        draw_bands(panels, path, caption=f"{caption}; {LINES}", columns=columns)

    def _panel(self, evidence: Evidence, metric: str, place: Place) -> Panel:
        lines = {
            label: evidence.curve(metric, label, place) for label in evidence.labels if place in evidence.places(label)
        }
        # A log axis is for what spans orders of magnitude, and has no place for what is not above 0.
        positive = all((values > 0).all() for _, values in lines.values())
        return Panel(str(place), WORDS[metric], lines, log=metric in self.log and positive)


@dataclass(frozen=True)
class Overall:
    """Scores over training, IQM over worlds for each seed: a row for each set of labels, a panel by group."""

    rows: tuple[tuple[str, ...], ...]

    def __call__(self, evidence: Evidence, path: Path, caption: str) -> None:
        panels = [
            Panel(group or "all worlds", "normalised score (IQM over worlds)", self._lines(evidence, labels, group))
            for labels in self.rows
            for group in evidence.groups
        ]
        draw_bands(panels, path, caption=f"{caption}; {LINES}", columns=len(evidence.groups))

    def _lines(self, evidence: Evidence, labels: Sequence[str], group: str) -> dict:
        lines = {}
        for label in labels:
            curves = [evidence.curve(SCORE, label, place) for place in evidence.places(label, group=group)]
            cube = np.stack([values for _, values in curves], axis=-1)  # (seeds, T, worlds)
            lines[label] = curves[0][0], iqm(cube[:, :, None, :])
        return lines


@dataclass(frozen=True)
class Intervals:
    """A statistic of each label with its interval: a panel for each group."""

    measure: Measure
    statistic: str = "IQM"

    def __call__(self, evidence: Evidence, path: Path, caption: str) -> None:
        from dr3.reports.figures import interval_plot

        found = {
            label: {
                group or self.statistic: evidence.aggregate(label, group, self.measure, STATISTICS[self.statistic])
                for group in evidence.groups
            }
            for label in evidence.labels
        }
        score = f"{self.statistic} of the {words('normalised score', evidence.reached(self.measure))}"
        _save(interval_plot(found, score=textwrap.fill(score, 28)), path, f"{caption}; {BARS}")


@dataclass(frozen=True)
class Probability:
    """The probability that one label improves on another, with its interval."""

    label: str
    over: str
    measure: Measure

    def __call__(self, evidence: Evidence, path: Path, caption: str) -> None:
        from dr3.reports.figures import improvement_plot

        score = words("normalised score", evidence.reached(self.measure))
        picture = improvement_plot([compared(evidence, self.label, self.over, self.measure)])
        _save(picture, path, f"{caption}; by the {score}; {BARS}")


@dataclass(frozen=True)
class Layers:
    """What is left of the return with a layer re-initialised: layers by checkpoints.

    A map for each label and world: a row for each world.
    """

    def __call__(self, evidence: Evidence, path: Path, caption: str) -> None:
        import dataclasses

        from dr3.reports.heatmap import draw_layers

        arms = [(label, place) for place in evidence.places() for label in evidence.labels]
        tests = [evidence.layers(label, place) for label, place in arms]
        if any(test.layers != tests[0].layers for test in tests):
            raise UserError("The maps of layers need networks with the same layers.")
        shares = np.concatenate([test.returns for test in tests])
        together = dataclasses.replace(tests[0], returns=shares, unmodified=np.ones((len(shares), shares.shape[-1])))
        draw_layers(
            together,
            [f"{label}: {place}" for label, place in arms],
            path,
            caption=f"{caption}; mean over seeds; blank: nothing was earned that a layer could keep",
            columns=len(evidence.labels),
        )


@dataclass(frozen=True)
class Map:
    """A measure of the score by two settings: a row of maps for each group, a map for each label.

    Worlds are called by the two settings, as `N = 200, 1 %`.
    """

    measure: Measure = "late"

    def __call__(self, evidence: Evidence, path: Path, caption: str) -> None:
        from matplotlib.figure import Figure

        with style.style():
            shown = [evidence.part(group) for group in evidence.groups]
            columns = max(len(part.labels) for part in shown)
            figure = Figure(figsize=(1.5 + 2.2 * columns, 0.8 + 2.2 * len(shown)), layout="constrained")
            axes = figure.subplots(len(shown), columns, squeeze=False)
            for row, (group, part) in enumerate(zip(evidence.groups, shown, strict=True)):
                across, along = _settings_of(part)
                maps = {label: self._cells(part, label, across, along) for label in part.labels}
                low, high = min(np.nanmin(one) for one in maps.values()), max(np.nanmax(one) for one in maps.values())
                for axis in axes[row, len(maps) :]:
                    axis.set_axis_off()
                for axis, (label, cells) in zip(axes[row], maps.items(), strict=False):
                    axis.imshow(cells, vmin=low, vmax=max(high, low + 1e-9), cmap="viridis", aspect="auto")
                    for (y, x), value in np.ndenumerate(cells):
                        dark = value < (low + high) / 2
                        axis.text(x, y, f"{value:.0f}", ha="center", va="center", color="white" if dark else "black")
                    axis.set_title(f"{label}\n{group}" if axis is axes[row, 0] else label, fontsize=10)
                    axis.set_xticks(range(len(across)), [word.removeprefix("N = ") for word in across])
                    axis.set_yticks(range(len(along)), along if axis is axes[row, 0] else [""] * len(along))
                    axis.set_xlabel("target period")
                    axis.grid(visible=False)
            words_of = words("normalised score", self.measure)
            _save(figure, path, f"{caption}; numbers: mean {words_of}; the same colours along a row")

    def _cells(self, part: Evidence, label: str, across: Sequence[str], along: Sequence[str]) -> np.ndarray:
        cells = np.full((len(along), len(across)), np.nan)
        for place in part.places(label):
            period, rows = place.world.split(", ")
            cells[along.index(rows), across.index(period)] = part.values(SCORE, label, place, self.measure).mean()
        return cells


def _settings_of(part: Evidence) -> tuple[list[str], list[str]]:
    pairs = [place.world.split(", ") for place in part.places()]
    return list(dict.fromkeys(first for first, _ in pairs)), list(dict.fromkeys(second for _, second in pairs))


def _save(figure: Figure, path: Path, caption: str) -> None:
    """With the caption below; the picture grows by its lines."""
    style.caption(figure, caption)
    figure.set_figheight(figure.get_figheight() + 0.15 * (1 + figure.get_supxlabel().count("\n")))
    figure.savefig(path, dpi=150)
