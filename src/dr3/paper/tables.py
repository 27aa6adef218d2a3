"""The result tables of the paper as data, number by number as printed; what is known to be wrong is in their notes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.errors import UserError


@dataclass(frozen=True)
class Column:
    """Which algorithm, and which measure of it: "final", "average" (over training), "2M" or "3M" (gradient steps)."""

    algorithm: str
    measure: str

    def __str__(self) -> str:
        return f"{self.algorithm}, {self.measure}"


@dataclass(frozen=True)
class PrintedValue:
    """A printed number with what is printed beside it: a standard deviation, an interval, or nothing."""

    mean: float
    deviation: float | None = None
    interval: tuple[float, float] | None = None

    def text(self, digits: int) -> str:
        """As printed, with `digits` after the point."""
        if self.deviation is not None:
            return f"{self.mean:.{digits}f} ± {self.deviation:.{digits}f}"
        if self.interval is not None:
            return f"{self.mean:.{digits}f} ({self.interval[0]:.{digits}f}, {self.interval[1]:.{digits}f})"
        return f"{self.mean:.{digits}f}"


@dataclass(frozen=True)
class Table:
    """One table of the paper.

    `unit` is "return" (raw) or "score" (normalised, in percent); `runs` is None where the paper doesn't say; `label` is
    the table's label in the paper's source.
    """

    name: str
    title: str
    place: str
    label: str
    unit: str
    runs: int | None
    uncertainty: str
    digits: int  # after the point
    notes: tuple[str, ...]
    columns: tuple[Column, ...]
    cells: Mapping[str, tuple[PrintedValue, ...]]  # row name -> one value per column

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(self.cells)

    def value(self, row: str, algorithm: str, measure: str) -> PrintedValue:
        return self.cells[row][self.columns.index(Column(algorithm, measure))]

    def means(self, algorithm: str, measure: str) -> NDArray[np.float64]:
        """One column: (rows,)."""
        return np.array([self.value(row, algorithm, measure).mean for row in self.rows])

    def deviations(self, algorithm: str, measure: str) -> NDArray[np.float64]:
        """The standard deviations of one column: (rows,); NaN where none is printed."""
        spreads = [self.value(row, algorithm, measure).deviation for row in self.rows]
        return np.array([np.nan if spread is None else spread for spread in spreads])

    def as_dict(self) -> dict[str, Any]:
        """For JSON: one record per cell, so that no reader needs to know the layout."""
        cells = [
            {
                "row": row,
                "algorithm": column.algorithm,
                "measure": column.measure,
                "mean": value.mean,
                "deviation": value.deviation,
                "interval": value.interval,
            }
            for row, values in self.cells.items()
            for column, value in zip(self.columns, values, strict=True)
        ]
        about = ("name", "title", "place", "label", "unit", "runs", "uncertainty", "digits", "notes")
        return {key: getattr(self, key) for key in about} | {"cells": cells}

    def as_csv(self) -> str:
        """One line per cell."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["row", "algorithm", "measure", "mean", "deviation", "lower", "upper"])
        for row, values in self.cells.items():
            for column, value in zip(self.columns, values, strict=True):
                lower, upper = value.interval or ("", "")
                deviation = "" if value.deviation is None else value.deviation
                writer.writerow([row, column.algorithm, column.measure, value.mean, deviation, lower, upper])
        return text.getvalue()


@cache
def all_tables() -> dict[str, Table]:
    """All result tables by name."""
    stored = json.loads(files("dr3.paper").joinpath("tables.json").read_text(encoding="utf-8"))
    return {name: _table(name, fields) for name, fields in stored.items()}


def table(name: str) -> Table:
    """One table; `all_tables()` lists them.

    Args:
        name: One of `all_tables`.
    """
    if name not in all_tables():
        raise UserError(f"the paper has no table named {name!r}; `dr3 paper show` lists them.")
    return all_tables()[name]


def _table(name: str, fields: dict) -> Table:
    cells = {row: tuple(_value(numbers) for numbers in values) for row, values in fields.pop("rows").items()}
    columns = tuple(Column(*column) for column in fields.pop("columns"))
    return Table(name=name, notes=tuple(fields.pop("notes")), columns=columns, cells=cells, **fields)


def _value(numbers: list[float]) -> PrintedValue:
    """[mean], [mean, deviation] or [mean, lower, upper]."""
    match numbers:
        case [mean]:
            return PrintedValue(mean)
        case [mean, deviation]:
            return PrintedValue(mean, deviation=deviation)
        case [mean, lower, upper]:
            return PrintedValue(mean, interval=(lower, upper))
    raise ValueError(f"a cell holds one to three numbers, not {numbers}")
