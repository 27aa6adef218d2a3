"""Curves over training: a line for the median over seeds, thin lines for the seeds themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dr3.errors import UserError
from dr3.files import check_file
from dr3.reports import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Panel:
    """One pair of axes: by label, the steps (T,) and the values (seeds, T)."""

    title: str
    ylabel: str
    lines: Mapping[str, tuple[NDArray[Any], NDArray[Any]]]
    log: bool = False
    reference: tuple[str, float] | None = None  # a level to compare with, and what it is


def check_picture(path: Path) -> None:
    """Refuse a file that no picture can be written to: before the work that it is to show, not after it."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise UserError("Pictures need matplotlib: pip install 'dr3[plots]'.") from None
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix and path.suffix.lower().removeprefix(".") not in known:
        raise UserError(f"{path}: a picture is written as .png, .pdf or .svg; give the file such an ending.")
    check_file(path)


def draw(panels: Sequence[Panel], path: Path, *, caption: str = "", columns: int | None = None) -> None:
    """Write the panels as one picture: side by side, or `columns` in a row, with one legend for all."""
    check_picture(path)
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with style.style():
        columns = columns or len(panels)
        rows = -(-len(panels) // columns)
        size = (4.8 * columns, 3.6 * rows)
        figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
        colour = style.colours(dict.fromkeys(label for panel in panels for label in panel.lines))
        for axis, panel in zip(axes.flat, panels, strict=False):
            _fill(axis, panel, colour)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        drawn = [line for axis in axes.flat for line in axis.get_legend_handles_labels()[0]]
        named = {str(line.get_label()): line for line in drawn}
        figure.legend(list(named.values()), list(named), loc="outside upper left", ncols=2 * columns, frameon=False)
        if caption:
            style.caption(figure, caption)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        plt.close(figure)


def draw_bands(panels: Sequence[Panel], path: Path, *, caption: str = "", columns: int | None = None) -> None:
    """Write the panels as one picture for a page: medians with the middle half of runs around them, one legend for all.

    Panels of a row that measure the same have the same scale.
    """
    check_picture(path)
    from matplotlib.figure import Figure

    with style.style():
        columns = columns or len(panels)
        rows = -(-len(panels) // columns)
        labels = list(dict.fromkeys(label for panel in panels for label in panel.lines))
        colour = style.colours(labels)
        figure = Figure(figsize=(max(5.0, 3.1 * columns), 0.9 + 2.4 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        for number, (axis, panel) in enumerate(zip(axes.flat, panels, strict=False)):
            for label, (steps, values) in panel.lines.items():
                low, middle, high = np.nanpercentile(values, (25, 50, 75), axis=0)
                axis.fill_between(steps, low, high, color=colour[label], alpha=0.2, linewidth=0)
                axis.plot(steps, middle, color=colour[label], linewidth=2.0, label=label)
            _scale(axis, panel)
            first = number % columns == 0 or panels[number - 1].ylabel != panel.ylabel
            axis.set_title(panel.title, fontsize=10)
            axis.set_ylabel(panel.ylabel if first and panel.ylabel != panel.title else "")
            axis.grid(visible=False, axis="x")
            axis.xaxis.set_major_formatter(lambda value, _: style.short(value))
            axis.locator_params(axis="x", nbins=4)
            if number + columns >= len(panels):
                axis.set_xlabel("gradient updates")
        for row in range(rows):
            beside = list(zip(axes[row], panels[row * columns :], strict=False))
            if len({(panel.ylabel, panel.log) for _, panel in beside}) == 1:
                limits = [axis.get_ylim() for axis, _ in beside]
                for axis, _ in beside:
                    axis.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
        handles = [figure.axes[0].plot([], [], color=colour[label], linewidth=2.0)[0] for label in labels]
        figure.legend(handles, labels, loc="outside upper left", ncols=min(len(labels), 2 * columns), frameon=False)
        if caption:
            style.caption(figure, caption)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)


def _fill(axis: Axes, panel: Panel, colour: Mapping[str, str]) -> None:
    for label, (steps, values) in panel.lines.items():
        for seed in values:
            axis.plot(steps, seed, color=colour[label], linewidth=0.7, alpha=0.4)
        axis.plot(steps, np.nanmedian(values, axis=0), color=colour[label], linewidth=2.2, label=label)
    if panel.reference is not None:
        name, level = panel.reference
        axis.axhline(level, color="#777777", linewidth=1, linestyle="--", label=name)
    _scale(axis, panel)
    axis.set_title(panel.title)
    axis.set_xlabel("gradient updates")
    axis.set_ylabel(panel.ylabel)
    axis.grid(visible=False, axis="x")


def _scale(axis: Axes, panel: Panel) -> None:
    if panel.log:
        axis.set_yscale("log")
    elif len(known := np.unique(np.concatenate([values.ravel() for _, values in panel.lines.values()]))) == 1:
        axis.set_ylim(known[0] - 1, known[0] + 1)  # else hundredths stand at an axis along which nothing happens
