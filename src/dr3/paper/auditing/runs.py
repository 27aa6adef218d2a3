"""What the AntMaze and Kitchen tables say about the three runs behind each cell, and those about the claims."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from dr3.paper.auditing.line import AuditLine
from dr3.paper.auditing.reconstruct import possible_pairs, whole_percentages
from dr3.paper.tables import table
from dr3.stats import improvement


def three_runs() -> Iterator[AuditLine]:
    for name in ("antmaze", "kitchen"):
        cells = [
            (f"{column}, {row}", value)
            for row, values in table(name).cells.items()
            for column, value in zip(table(name).columns, values, strict=True)
        ]
        strange = [where for where, value in cells if not whole_percentages(value.mean, value.deviation or 0.0)]
        yield AuditLine(
            "Three runs behind mean ± deviation",
            f"{name}: each cell is three whole percentages",
            f"{len(cells)} cells",
            f"{len(cells) - len(strange)} can be" + "".join(f"; not {where}" for where in strange),
            "possible" if not strange else "does not follow",
        )


def probabilities(rng: np.random.Generator) -> Iterator[AuditLine]:
    for name, published in (("antmaze", (0.83, 0.7, 0.96)), ("kitchen", (0.8, 0.6, 1.0))):
        results = [
            improvement(np.transpose(first), np.transpose(second), rng, replicates=5_000)
            for first, second in _possible_matrices(name)
        ]
        spans = []
        for field in ("estimate", "lower", "upper"):
            values = [getattr(result.probability, field) for result in results]
            spans.append((min(values), max(values)))
        for what, value, (least, greatest) in zip(
            ("", ", lower limit", ", upper limit"), published, spans, strict=True
        ):
            possible = least - 0.01 <= value <= greatest + 0.01
            yield AuditLine(
                "Probability of improvement, CQL+DR3 over CQL at 2M",
                f"{name}{what}",
                f"{value:g}",
                f"{least:.2f} to {greatest:.2f} over all runs that fit",
                "possible" if possible else "does not follow",
            )
        for word in ("significant", "meaningful"):
            passing = sum(getattr(result, word) for result in results)
            yield AuditLine(
                "Probability of improvement, CQL+DR3 over CQL at 2M",
                f"{name} is {word}",
                "yes",
                f"in {passing} of {len(results)} ways to fill in the runs",
                "follows" if passing == len(results) else "possible" if passing else "does not follow",
            )


def _possible_matrices(name: str) -> Iterator[tuple[tuple, tuple]]:
    """(CQL+DR3, CQL) as (tasks, runs), one for each combination of ways in which the tasks can come out."""
    found = table(name)
    by_task = []
    for row in found.rows:
        ours, base = (found.value(row, algorithm, "2M") for algorithm in ("CQL+DR3", "CQL"))
        by_task.append(possible_pairs((ours.mean, ours.deviation or 0.0), (base.mean, base.deviation or 0.0)))
    for combination in itertools.product(*by_task):
        yield tuple(pair[0] for pair in combination), tuple(pair[1] for pair in combination)
