"""Curves as SVG, drawn here and not by a script: they show with JavaScript off, on paper, and in any colour scheme.

Colours come from the page's style: a group's elements have its class, `g0`, `g1`, …
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.reports.curves import Panel
from dr3.reports.markup import Html, tag
from dr3.reports.style import PALETTE, short

WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 48, 430, 12, 222
NAME = 0.05  # of the curves' height: what the name of a level takes beyond them
MOST_POINTS = 400  # more than the picture has room for; longer curves are thinned, their ends kept


@dataclass(frozen=True)
class Axis:
    """From values to places along one side of the picture."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """On a log axis what is not positive lies on the edge, at `low`."""
        values = np.asarray(values, np.float64)
        low, high = self.low, self.high
        if self.log:
            values, low, high = np.log10(np.maximum(values, low)), np.log10(low), np.log10(high)
        return self.start + (values - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """A few round values."""
        if self.log and self.high >= 10 * self.low:
            powers = range(int(np.floor(np.log10(self.low))), int(np.ceil(np.log10(self.high))) + 1)
            decades = [tick for tick in (10.0**n for n in powers) if self.low <= tick <= self.high]
            if len(decades) >= 3:
                return decades[:: -(-len(decades) // 6)]
            return [tick for tick in (m * 10.0**n for n in powers for m in (1, 2, 5)) if self.low <= tick <= self.high]
        step = _round_step((self.high - self.low) / 4)
        first = np.ceil(self.low / step - 1e-9)
        # Adding 0 turns -0 into 0.
        return [float(f"{n * step:.9g}") + 0.0 for n in np.arange(first, self.high / step + 1e-9)]


def axes_of(panel: Panel, *, log: bool) -> tuple[Axis, Axis]:
    """Axes that hold every curve; the vertical one with a little room."""
    steps = np.concatenate([steps for steps, _ in panel.lines.values()])
    values = np.concatenate([values[np.isfinite(values)] for _, values in panel.lines.values()])
    if panel.reference is not None:
        values = np.append(values, panel.reference[1])
    x = Axis(float(steps.min()), float(max(steps.max(), steps.min() + 1)), LEFT, RIGHT)
    if log:
        positive = values[values > 0]
        low, high = float(positive.min()), float(positive.max())
        low, high = (low / 10, high) if (values <= 0).any() else (low, high)  # a decade for zero to lie under
        room = (high / low) ** 0.05 if high > low else 2.0
        return x, Axis(low / room, high * room, BOTTOM, TOP, log=True)
    low, high = float(values.min()), float(values.max())
    room = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    below, above = (room + NAME * (high - low) if edge else room for edge in _at_an_edge(panel, low, high))
    return x, Axis(low - below, high + above, BOTTOM, TOP)


def chart(panel: Panel, *, log: bool, title: str) -> Html:
    """One picture: for each group a band over its seeds, a thin line for each seed, a line for their median."""
    x, y = axes_of(panel, log=log)
    parts = [*_grid(x, y, panel)]
    for number, (steps, values) in enumerate(panel.lines.values()):
        kept = thinned(len(steps))
        parts.append(_group(number, x.place(steps[kept]), values[:, kept], y))
    parts += _level(y, panel)
    parts.append(tag("g", class_="cursor"))  # where the script shows what the pointer is at
    return tag(
        "svg",
        tag("title", title),
        *parts,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        data_x=f"{x.low!r} {x.high!r} {x.start} {x.end}",
        data_y=f"{y.low!r} {y.high!r} {y.start} {y.end}",
        data_log=log,
    )


def summary(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Median, lowest and highest over the members that have a value, at each step; NaN where none has: (members, T)."""
    finite = np.where(np.isfinite(values), values, np.nan)
    some = ~np.isnan(finite).all(axis=0)
    answer = np.full((3, values.shape[1]), np.nan)
    answer[:, some] = [np.nanmedian(finite[:, some], 0), np.nanmin(finite[:, some], 0), np.nanmax(finite[:, some], 0)]
    return answer[0], answer[1], answer[2]


def thinned(length: int) -> NDArray[np.int64]:
    """Which points of a curve to draw."""
    return np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).round().astype(np.int64))


def colour_class(number: int) -> str:
    """A group's classes: its colour, and a dash once the colours are used up."""
    return f"g{number} c{number % len(PALETTE)}" + (" dashed" if number >= len(PALETTE) else "")


def _grid(x: Axis, y: Axis, panel: Panel) -> list[Html]:
    parts = []
    zero = y.log and any((values == 0).any() for _, values in panel.lines.values())
    for value, place in zip(y.ticks(), y.place(np.array(y.ticks())), strict=True):
        parts.append(tag("line", class_="grid", x1=LEFT, x2=RIGHT, y1=_n(place), y2=_n(place)))
        if not zero or place < BOTTOM - 14:
            parts.append(tag("text", _tick(value), class_="tick", x=LEFT - 7, y=_n(place + 4), text_anchor="end"))
    if zero:
        parts.append(tag("text", "0", class_="tick", x=LEFT - 7, y=BOTTOM + 4, text_anchor="end"))
    parts.append(tag("line", class_="axis", x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM))
    for value, place in zip(x.ticks(), x.place(np.array(x.ticks())), strict=True):
        anchor = "end" if place > RIGHT - 12 else "middle"
        parts.append(tag("text", short(value), class_="tick", x=_n(place), y=BOTTOM + 18, text_anchor=anchor))
    return parts


def _level(y: Axis, panel: Panel) -> list[Html]:
    """A dashed line to compare with, its name above or below it, wherever there is room."""
    if panel.reference is None:
        return []
    name, level = panel.reference
    place = float(y.place(np.array(level)))
    beside = place + (15 if place < (TOP + BOTTOM) / 2 else -6)
    if not y.log:
        values = np.concatenate([values[np.isfinite(values)] for _, values in panel.lines.values()])
        lowest, highest = _at_an_edge(panel, float(values.min()), float(values.max()))
        beside = place + 15 if lowest else place - 5 if highest else beside
    return [
        tag("line", class_="reference", x1=LEFT, x2=RIGHT, y1=_n(place), y2=_n(place)),
        tag("text", name, class_="name", x=LEFT + 6, y=_n(beside)),
    ]


def _at_an_edge(panel: Panel, low: float, high: float) -> tuple[bool, bool]:
    """Whether all curves lie above the level, or all below it, but for a hair: its name goes to the other side."""
    if panel.reference is None:
        return False, False
    level, hair = panel.reference[1], 0.02 * (high - low)
    return level <= low + hair, level >= high - hair


def _group(number: int, x: NDArray[np.float64], values: NDArray[np.float64], y: Axis) -> Html:
    middle, low, high = summary(values)
    band = Html("")
    if len(values) > 1:
        areas = []
        for part in _stretches(low):
            upper = [*zip(x[part], y.place(high[part]), strict=True)]
            lower = [*zip(x[part], y.place(low[part]), strict=True)]
            areas.append(_path(upper + lower[::-1]) + "Z")
        band = tag("path", class_="band", d="".join(areas))
    seeds = [tag("path", class_="seed", d=_line(x, seed, y)) for seed in values] if len(values) > 1 else []
    return tag("g", band, *seeds, tag("path", class_="line", d=_line(x, middle, y)), class_=colour_class(number))


def _line(x: NDArray[np.float64], values: NDArray[np.float64], y: Axis) -> str:
    return "".join(_path([*zip(x[part], y.place(values[part]), strict=True)]) for part in _stretches(values))


def _stretches(values: NDArray[np.float64]) -> list[slice]:
    """The unbroken stretches of finite values."""
    finite = np.concatenate([[False], np.isfinite(values), [False]])
    starts, ends = np.flatnonzero(finite[1:] & ~finite[:-1]), np.flatnonzero(~finite[1:] & finite[:-1])
    return [slice(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


def _path(points: list[tuple[float, float]]) -> str:
    """A lone point is a line to itself, which a round cap makes a dot."""
    points = points * 2 if len(points) == 1 else points
    return "M" + "L".join(f"{_n(x)},{_n(y)}" for x, y in points)


def _n(place: float) -> str:
    return f"{place:.1f}".removesuffix(".0")


def _tick(value: float) -> str:
    text = short(value) if value == 0 or abs(value) >= 1e-3 else f"{value:.0e}".replace("e-0", "e-")
    return "\N{MINUS SIGN}" + text[1:] if value < 0 else text


def _round_step(step: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(step))
    return float(next(m for m in (1, 2, 5, 10) if m * power >= step * (1 - 1e-9)) * power)
