"""The checks on the paper's own numbers: runs drawn from the means and deviations that its tables print.

A check that does not show on these could not have shown on the paper's runs: that says something of the table, or of
the check, and nothing of anybody's runs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dr3.errors import UserError
from dr3.paper.experiments.beside import label_of
from dr3.paper.experiments.declaration import Arm, Experiment
from dr3.paper.experiments.evidence import SCORE, Evidence, Floats, Place
from dr3.paper.experiments.result import answers_of
from dr3.paper.experiments.scoring import Percent
from dr3.paper.scores import score_range
from dr3.paper.tables import table

# The tables with a deviation for each number, by the experiment whose checks they are put to, and its groups.
TABLES = {
    "table-2": {"": "antmaze"},
    "table-A.2": {"": "kitchen"},
    "table-F.2": {"": "brac"},
    **{f"table-F.{4 + n}": {share: f"atari-cql-{share[:-1]}"} for n, share in enumerate(("1%", "5%", "10%"))},
    **{f"table-F.{7 + n}": {share: f"atari-rem-{share[:-1]}"} for n, share in enumerate(("1%", "5%", "10%"))},
}
TABLES["table-1"] = TABLES["table-F.1"] = TABLES["table-F.3"] = {
    share: f"atari-cql-{share[:-1]}+atari-rem-{share[:-1]}" for share in ("1%", "5%", "10%")
}
DEFAULT_RUNS = 3  # where the paper does not say


class Drawn(Evidence):
    """Runs drawn from printed tables, each with exactly the printed mean and deviation, at the printed checkpoints."""

    def __init__(self, tables: dict[str, str], rng: np.random.Generator) -> None:
        self.rows: dict[tuple[str, Place], dict[str, Floats]] = {}
        for group, names in tables.items():
            for name in names.split("+"):
                found = table(name)
                for world in found.rows:
                    for column, value in zip(found.columns, found.cells[world], strict=True):
                        runs = found.runs or DEFAULT_RUNS
                        scores = _standard(rng, runs) * (value.deviation or 0.0) + value.mean
                        limits = score_range(world) if found.unit == "return" else None
                        if limits is not None:
                            scores = 100 * (scores - limits[0]) / (limits[1] - limits[0])
                        key = label_of(column), Place(group, world)
                        self.rows.setdefault(key, {})[column.measure] = scores
        super().__init__([Arm(label, place.world, (), Percent(), place.group) for label, place in self.rows], Path())

    def curve(self, metric: str, label: str, place: Place) -> tuple[NDArray[np.int64], Floats]:
        """Three checkpoints after the untrained one: their mean is the average, the last two are 2M and 3M."""
        if metric != SCORE:
            raise UserError(f"The paper prints no {metric}.")
        known = self.rows[label, place]
        last = known.get("3M", known.get("final", known.get("2M")))
        assert last is not None
        before = known.get("2M", last) if "3M" in known else last
        first = 3 * known["average"] - last - before if "average" in known else before
        return np.array([0, 1, 2, 3]), np.stack([np.zeros_like(last), first, before, last], axis=1)


def shows_on_printed(experiment: Experiment, draws: int = 40, seed: int = 0) -> dict[tuple[str, str], float] | None:
    """By group and rule, how often a check shows on runs drawn from the paper's own tables; None without a table.

    Args:
        experiment: One whose table prints deviations.
        draws: How often runs are drawn.
        seed: Everything drawn follows from it.
    """
    if experiment.id not in TABLES:
        return None
    rng, counts = np.random.default_rng(seed), dict[tuple[str, str], list[bool]]()
    for _ in range(draws):
        for answer in answers_of(experiment, Drawn(TABLES[experiment.id], rng)):
            counts.setdefault((answer.group, answer.rule.rstrip(".")), []).append(answer.shows)
    return {key: float(np.mean(shown)) for key, shown in counts.items()}


def _standard(rng: np.random.Generator, runs: int) -> Floats:
    drawn = rng.normal(size=runs)
    return (drawn - drawn.mean()) / drawn.std(ddof=1)
