"""Our numbers beside those that the paper prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dr3.paper.experiments.checks import STATISTICS
from dr3.paper.experiments.declaration import Row
from dr3.paper.experiments.evidence import Evidence, Measure, Place, words
from dr3.paper.tables import Column, Table, table
from dr3.runs.outcomes import RETURN


@dataclass(frozen=True)
class Aggregates:
    """A table of one statistic over all worlds, a row for each group."""

    table: str
    statistic: str = "IQM"

    def __call__(self, evidence: Evidence) -> list[Row]:
        found = table(self.table)
        return [
            Row(
                f"{row}: {column.algorithm}, {self.statistic} of the {words('score', measure_of(column, found))}",
                value.text(found.digits),
                self._ours(evidence, row, column, measure_of(column, found)),
            )
            for row in found.rows
            for column, value in zip(found.columns, found.cells[row], strict=True)
        ]

    def _ours(self, evidence: Evidence, group: str, column: Column, measure: Measure) -> str | None:
        label = label_of(column)
        if not evidence.places(label, group=group):
            return None
        return str(evidence.aggregate(label, group, measure, STATISTICS[self.statistic]))


@dataclass(frozen=True)
class ByWorld:
    """A table with a row for each world: mean ± standard deviation over runs, of returns or of scores.

    Worlds that the paper does not have stand alone; its rows without a world here are one line together.
    """

    table: str
    metric: str = RETURN

    def __call__(self, evidence: Evidence) -> list[Row]:
        return list(self._rows(evidence))

    def _rows(self, evidence: Evidence) -> Iterator[Row]:
        found = table(self.table)
        places = {place.world: place for place in evidence.places()}
        measured = "return" if self.metric == RETURN else "score"
        for world, place in places.items():
            for column in found.columns:
                value = found.value(world, column.algorithm, column.measure) if world in found.cells else None
                ours = self._ours(evidence, place, column, measure_of(column, found))
                if value or ours:
                    reached = evidence.reached(measure_of(column, found))
                    what = f"{world}: {column.algorithm}, {words(measured, reached)}"
                    yield Row(what, None if value is None else value.text(found.digits), ours)
        absent = [row for row in found.rows if row not in places]
        if absent:
            yield Row(f"not run here: {', '.join(absent)}", f"dr3 paper show {self.table}", None)

    def _ours(self, evidence: Evidence, place: Place, column: Column, measure: Measure) -> str | None:
        if place not in evidence.places(label_of(column)):
            return None
        values = evidence.scores(label_of(column), [place], measure, self.metric)
        return f"{values.mean():.1f} ± {np.std(values, ddof=1):.1f}"


def label_of(column: Column) -> str:
    """As arms are called: `CQL + DR3` for the tables' `CQL+DR3`."""
    return column.algorithm.replace("+", " + ")


def measure_of(column: Column, of: Table) -> Measure:
    """As runs are measured: where a table ends at 3M steps, its 2M are two thirds of training."""
    match column.measure:
        case "average":
            return "average"
        case "2M" if any(other.measure == "3M" for other in of.columns):
            return 2 / 3
    return "final"
