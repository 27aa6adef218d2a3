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
    """Write the panels as one picture: side by side, or `columns` in a row."""
    check_picture(path)
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with style.style():
        columns = columns or len(panels)
        rows = -(-len(panels) // columns)
        size = (4.8 * columns, 3.6 * rows)
        figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
        for axis, panel in zip(axes.flat, panels, strict=False):
            _fill(axis, panel)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        if caption:
            style.caption(figure, caption)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        plt.close(figure)


def _fill(axis: Axes, panel: Panel) -> None:
    colour = style.colours(panel.lines)
    for label, (steps, values) in panel.lines.items():
        for seed in values:
            axis.plot(steps, seed, color=colour[label], linewidth=0.7, alpha=0.4)
        axis.plot(steps, np.nanmedian(values, axis=0), color=colour[label], linewidth=2.2, label=label)
    if panel.reference is not None:
        name, level = panel.reference
        axis.axhline(level, color="#777777", linewidth=1, linestyle="--", label=name)
    if panel.log:
        axis.set_yscale("log")
    elif len(known := np.unique(np.concatenate([values.ravel() for _, values in panel.lines.values()]))) == 1:
        axis.set_ylim(known[0] - 1, known[0] + 1)  # else hundredths stand at an axis along which nothing happens
    axis.set_title(panel.title)
    axis.set_xlabel("gradient updates")
    axis.set_ylabel(panel.ylabel)
    axis.grid(visible=False, axis="x")
    # Below the axes, where it covers no curve.
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False)
