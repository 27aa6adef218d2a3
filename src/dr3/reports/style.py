"""How pictures look: light, few lines, colours that colour-blind readers can tell apart, names beside their lines."""

from __future__ import annotations

import textwrap
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette without its yellow, which is too pale for lines on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
INK, FAINT = "#222222", "#E6E6E6"

_SETTINGS: dict[Any, Any] = {
    "figure.facecolor": "white",
    "figure.dpi": 150,
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.edgecolor": "#999999",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.prop_cycle": f"cycler('color', {list(PALETTE)})",
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",  # text stays text: it can be searched, and read by a screen reader
    "svg.hashsalt": "dr3",  # the same picture is the same file
}


@contextmanager
def style() -> Generator[None]:
    """The house style, for the pictures drawn inside it only."""
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS):
        yield


def save(figure: Figure, file: str | Path | IO[str]) -> None:
    """Write a picture as SVG: its text stays text, and the same picture is the same file."""
    with style():
        figure.savefig(file, format="svg", metadata={"Date": None})


def caption(figure: Figure, words: str) -> None:
    """Small words under a picture, in as many lines as its width asks for."""
    lines = textwrap.fill(words, int(figure.get_figwidth() / 0.066))  # inches that a letter takes
    figure.supxlabel(lines, fontsize=8, color="#555555")


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name, by order."""
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def apart(positions: Iterable[float], gap: float) -> list[float]:
    """Positions moved just enough that labels put there are at least `gap` apart, in the same order."""
    wanted = np.asarray(list(positions), dtype=np.float64)
    order = np.argsort(wanted, kind="stable")
    moved = wanted[order]
    # Pushing up from below and down from above, and taking the middle, keeps a crowd centred where it was.
    steps = gap * np.arange(len(moved))
    up = np.maximum.accumulate(moved - steps) + steps
    down = np.minimum.accumulate((moved - steps)[::-1])[::-1] + steps
    result = np.empty_like(wanted)
    result[order] = (up + down) / 2.0
    return result.tolist()


def short(value: float) -> str:
    """12500000 -> 12.5M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
