"""What the runs behind a printed mean and standard deviation can have been."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from dr3.stats import iqm

Floats = NDArray[np.float64]


def whole_percentages(mean: float, deviation: float) -> list[tuple[float, ...]]:
    """All triples of whole percentages with this mean and this sample standard deviation, both printed to two digits.

    The paper's AntMaze scores are success rates of three runs; digits may be rounded or cut, so a difference below one
    unit of the last digit is allowed.
    """
    return [
        (float(a), float(b), float(c))
        for total in range(math.ceil(3 * (mean - 0.01)), math.floor(3 * (mean + 0.01)) + 1)
        for a in range(min(total // 3, 100) + 1)
        for b in range(a, (total - a) // 2 + 1)
        if (c := total - a - b) <= 100
        and abs(total / 3 - mean) < 0.01
        and abs(float(np.std([a, b, c], ddof=1)) - deviation) < 0.01
    ]


def triples(mean: float, deviation: float) -> list[tuple[float, ...]]:
    """Candidates for three runs: whole percentages where they fit, else points all round the circle of triples."""
    found = whole_percentages(mean, deviation)
    if found:
        return found
    # Three numbers with mean m and sample deviation s: m + s * sqrt(4 / 3) * cos(angle + 0, 120, 240 degrees).
    angles = np.linspace(0.0, 2.0 * np.pi / 3.0, 240, endpoint=False)[:, None] + 2.0 * np.pi / 3.0 * np.arange(3)
    runs = np.sort(mean + deviation * math.sqrt(4.0 / 3.0) * np.cos(angles), axis=1)
    return [tuple(row) for row in runs.tolist()]


def possible_pairs(
    first: tuple[float, float], second: tuple[float, float]
) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Runs behind two (mean, deviation) cells, one pair for each way in which the first can beat the second."""
    found = {}
    for x, y in itertools.product(triples(*first), triples(*second)):
        order = tuple(np.sign(np.subtract.outer(x, y)).ravel())
        found.setdefault(order, (x, y))
    return list(found.values())


def iqm_range(means: Floats, deviations: Floats, runs: int, rng: np.random.Generator) -> tuple[float, float]:
    """The least and the greatest IQM that runs with these means and deviations, (tasks,) each, can have.

    Found by search (each task in turn takes the shape that moves the IQM most), so the true range can be a little
    wider; rounding of the printed numbers is left out.
    """
    shapes = _shapes(runs, rng)
    # (tasks, shapes, runs): every task with every shape
    choices = means[:, None, None] + deviations[:, None, None] * shapes
    limits = []
    for sign in (-1.0, 1.0):
        current = choices[:, 0, :].T.copy()  # (runs, tasks)
        for _ in range(4):
            for task in range(len(means)):
                tried = np.repeat(current[None], len(shapes), axis=0)
                tried[:, :, task] = choices[task]
                current = tried[np.argmax(sign * iqm(tried))]
        limits.append(float(iqm(current)))
    return limits[0], limits[1]


def _shapes(runs: int, rng: np.random.Generator) -> Floats:
    """(shapes, runs) with mean 0 and sample standard deviation 1: each split into two clusters, and random ones."""
    clusters = [np.repeat([0.0, 1.0], [low, runs - low]) for low in range(1, runs)]
    raw = np.concatenate([clusters, rng.standard_normal((120, runs))])
    raw -= raw.mean(axis=1, keepdims=True)
    return raw / raw.std(axis=1, ddof=1, keepdims=True)
