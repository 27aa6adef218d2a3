"""Curves over training: a line for the mean over seeds, thin lines for the seeds themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dr3.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which stay apart for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


@dataclass(frozen=True)
class Panel:
    """One pair of axes: by label, the steps (T,) and the values (seeds, T)."""

    title: str
    ylabel: str
    lines: Mapping[str, tuple[NDArray[Any], NDArray[Any]]]
    log: bool = False
    reference: tuple[str, float] | None = None  # a level to compare with, and what it is


def draw(panels: Sequence[Panel], path: Path, *, caption: str = "") -> None:
    """Write the panels side by side as one PNG."""
    plt = _pyplot()
    figure, axes = plt.subplots(1, len(panels), figsize=(5.2 * len(panels), 3.9), layout="constrained", squeeze=False)
    for axis, panel in zip(axes[0], panels, strict=True):
        _fill(axis, panel)
    if caption:
        figure.supxlabel(caption, fontsize=8.5, color="#555555")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _fill(axis: Axes, panel: Panel) -> None:
    for (label, (steps, values)), colour in zip(panel.lines.items(), COLOURS, strict=False):
        for seed in values:
            axis.plot(steps, seed, color=colour, linewidth=0.7, alpha=0.35)
        axis.plot(steps, np.nanmean(values, axis=0), color=colour, linewidth=2.2, label=label)
    if panel.reference is not None:
        name, level = panel.reference
        axis.axhline(level, color="#777777", linewidth=1, linestyle="--", label=name)
    if panel.log:
        axis.set_yscale("log")
    axis.set_title(panel.title, loc="left", fontsize=11)
    axis.set_xlabel("gradient updates")
    axis.set_ylabel(panel.ylabel)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.legend(frameon=False, fontsize=9)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise UserError("Pictures need matplotlib: pip install 'dr3[plots]'.") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
