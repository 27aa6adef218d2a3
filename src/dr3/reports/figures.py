"""The four pictures of statistics: intervals, profiles, curves over training, probabilities of improvement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dr3.reports.style import apart, colours, short, style
from dr3.stats import (
    Band,
    Comparison,
    Interval,
    Measure,
    Missing,
    ScoreTable,
    efficiency_curve,
    performance_profile,
    profile_thresholds,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def interval_plot(intervals: Mapping[str, Mapping[str, Interval]], *, score: str = "score") -> Figure:
    """{algorithm: {statistic: Interval}}: one panel per statistic, one row per algorithm; `score` names the axes."""
    with style():
        names = list(intervals)
        statistics = list(next(iter(intervals.values())))
        height = 0.95 + 0.34 * len(names) + 0.15 * score.count("\n")
        figure, panels = _axes(1.6 + 1.9 * len(statistics), height, len(statistics))
        colour = colours(names)
        for panel, statistic in zip(panels, statistics, strict=True):
            for row, name in enumerate(names):
                value = intervals[name][statistic]
                panel.barh(row, value.upper - value.lower, 0.5, value.lower, color=colour[name], alpha=0.3, linewidth=0)
                panel.plot([value.estimate] * 2, [row - 0.25, row + 0.25], color=colour[name], solid_capstyle="butt")
            panel.set_title(statistic)
            panel.set_xlabel(f"{score}, lower is better" if statistic == "optimality gap" else score)
            panel.use_sticky_edges = False  # bars would stick to the frame and look cut off
            panel.margins(x=0.08)
            panel.set_ylim(len(names) - 0.5, -0.5)
            panel.set_yticks(range(len(names)), names if panel is panels[0] else [""] * len(names))
            panel.tick_params(axis="y", length=0)
            panel.grid(visible=False, axis="y")
            panel.locator_params(axis="x", nbins=4)
        for label, name in zip(panels[0].get_yticklabels(), names, strict=True):
            label.set_color(colour[name])
        return figure


def profile_plot(profiles: Mapping[str, Band], *, score: str = "normalised score") -> Figure:
    """{algorithm: Band}: the share of runs above each score."""
    with style():
        figure, (panel,) = _axes(5.2, 3.2)
        _bands(panel, profiles)
        panel.set_xlabel(f"{score} τ")
        panel.set_ylabel("share of runs above τ")
        panel.set_ylim(-0.02, 1.02)
        # At both ends all profiles meet; the names go where they are furthest apart.
        _label_inside(panel, profiles)
        return figure


def efficiency_plot(curves: Mapping[str, Band], *, statistic: str = "IQM of normalised scores") -> Figure:
    """{algorithm: Band}: a statistic over gradient steps."""
    with style():
        figure, (panel,) = _axes(5.2, 3.2)
        _bands(panel, curves)
        panel.set_xlabel("gradient steps")
        panel.set_ylabel(statistic)
        panel.xaxis.set_major_formatter(lambda value, _: short(value))
        _label_ends(panel, curves)
        return figure


def improvement_plot(comparisons: Sequence[Comparison]) -> Figure:
    """One bar per comparison, with the two lines that the paper's verdicts are about."""
    with style():
        figure, (panel,) = _axes(6.6, 1.0 + 0.42 * len(comparisons))
        names = [f"{item.algorithm} over {item.baseline}" for item in comparisons]
        colour = colours(names)
        for row, (name, item) in enumerate(zip(names, comparisons, strict=True)):
            value = item.improvement.probability
            panel.barh(row, value.upper - value.lower, 0.5, value.lower, color=colour[name], alpha=0.3, linewidth=0)
            panel.plot([value.estimate] * 2, [row - 0.25, row + 0.25], color=colour[name], solid_capstyle="butt")
            panel.text(1.02, row, f"{value.estimate:.2f}  {item.improvement.verdict}", va="center")
        for line, text in ((0.5, "chance"), (0.75, "0.75")):
            panel.axvline(line, color="#666666", linewidth=1.0, linestyle=(0, (3, 3)), zorder=0)
            panel.text(line, -0.62, text, ha="center", va="bottom", fontsize=8.0, color="#666666")
        panel.set_xlim(0.0, 1.0)
        panel.set_ylim(len(names) - 0.5, -0.6)
        panel.set_yticks(range(len(names)), names)
        panel.tick_params(axis="y", length=0)
        panel.grid(visible=False, axis="y")
        panel.set_xlabel("probability of improvement, averaged over tasks")
        return figure


def statistics_figures(
    table: ScoreTable,
    measures: Sequence[Measure],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    missing: Missing = "error",
) -> dict[str, Figure]:
    """All pictures of a summary by name: three for each measure, and one of training if there are checkpoints."""
    pictures = {}
    for measure in measures:
        scores = measure.matrices.scores
        taus = profile_thresholds(scores)
        profiles = {name: performance_profile(x, taus, rng, level=level, missing=missing) for name, x in scores.items()}
        pictures[f"{measure.name}-intervals"] = interval_plot(measure.intervals)
        pictures[f"{measure.name}-profile"] = profile_plot(profiles)
        if measure.comparisons:
            pictures[f"{measure.name}-improvement"] = improvement_plot(measure.comparisons)
    if len(table.common_steps) > 1:
        columns = [table.tasks.index(task) for task in measures[0].matrices.tasks]
        curves = {
            name: efficiency_curve(cube[:, columns], table.common_steps, rng, level=level, missing=missing)
            for name, cube in table.over_training().items()
        }
        pictures["efficiency"] = efficiency_plot(curves)
    return pictures


def _axes(width: float, height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    # Figure itself rather than pyplot: no global state, no window, nothing to close.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.06)
    return figure, list(figure.subplots(1, panels, squeeze=False)[0])


def _bands(panel: Axes, bands: Mapping[str, Band]) -> None:
    colour = colours(bands)
    for name, band in bands.items():
        panel.fill_between(band.axis, band.lower, band.upper, color=colour[name], alpha=0.18, linewidth=0)
        panel.plot(band.axis, band.estimate, color=colour[name])
    panel.margins(x=0.01)


def _label_ends(panel: Axes, bands: Mapping[str, Band]) -> None:
    """Each name at the right end of its line, moved apart where lines end together."""
    low, high = panel.get_ylim()
    heights = apart([band.estimate[-1] for band in bands.values()], 0.065 * (high - low))
    for (name, band), height in zip(bands.items(), heights, strict=True):
        panel.annotate(
            name,
            (band.axis[-1], height),
            (6, 0),
            textcoords="offset points",
            va="center",
            color=colours(bands)[name],
            annotation_clip=False,
        )


def _label_inside(panel: Axes, bands: Mapping[str, Band]) -> None:
    """Each name in the upper right, in the order in which the lines run there."""
    ordered = sorted(bands, key=lambda name: -float(np.mean(bands[name].estimate)))
    for row, name in enumerate(ordered):
        panel.text(
            0.99,
            0.97 - 0.075 * row,
            name,
            transform=panel.transAxes,
            ha="right",
            va="top",
            color=colours(bands)[name],
            fontweight="bold",
        )
