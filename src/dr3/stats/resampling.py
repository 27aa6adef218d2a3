"""The stratified percentile bootstrap: runs are resampled within each task, never across tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dr3.errors import UserError
from dr3.stats.aggregates import Floats, Missing, Statistic, checked

# Scores resampled at once: half a megabyte stays in the cache and bounds the memory for any number of replicates.
BLOCK = 1 << 16


@dataclass(frozen=True)
class Interval:
    """An estimate and the limits of its `level` confidence interval, NaN where the runs are too few for any."""

    estimate: float
    lower: float
    upper: float
    level: float = 0.95

    @property
    def has_limits(self) -> bool:
        return not math.isnan(self.lower)

    def without_limits(self) -> Interval:
        """The estimate alone."""
        return Interval(self.estimate, math.nan, math.nan, self.level)

    def text(self, number: Callable[[float], str] = "{:.1f}".format) -> str:
        """`20.9 (19.1, 22.3)` with the numbers as `number` writes them; without limits `20.9 (–)`."""
        limits = f"{number(self.lower)}, {number(self.upper)}" if self.has_limits else "–"
        return f"{number(self.estimate)} ({limits})"

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class Band:
    """An estimate with limits at each point of an axis; the limits hold point by point, not for the whole curve."""

    axis: Floats
    estimate: Floats
    lower: Floats
    upper: Floats
    level: float = 0.95


def too_few(*scores: Floats) -> bool:
    """Whether (runs, tasks) matrices are one task with fewer than three runs in any of them.

    Two runs that agree would pass for certainty, "better 100 % (100 %, 100 %)". Over several tasks each adds its own
    spread, and two runs of each may do.

    Args:
        scores: The matrices that an interval is about; a missing run is NaN.
    """
    return any(matrix.shape[1] == 1 and np.sum(~np.isnan(matrix)) < 3 for matrix in scores)


def limits(replicates: Floats, level: float, *scores: Floats) -> Floats:
    """The percentile limits over the first axis: shape (2, ...).

    NaN if some task of the (runs, tasks) `scores` that were resampled has a single run: that run comes out of every
    draw, and limits without its spread would pass for certainty.
    """
    if not 0.0 < level < 1.0:
        raise UserError(f"level is a probability such as 0.95, not {level}.")
    tail = (1.0 - level) / 2.0
    found = np.quantile(replicates, [tail, 1.0 - tail], axis=0)
    single = any((np.sum(~np.isnan(matrix), axis=0) < 2).any() for matrix in scores)
    return np.full_like(found, np.nan) if single else found


def as_matrix(scores: ArrayLike, missing: Missing) -> Floats:
    """One checked (runs, tasks) matrix."""
    matrix = checked(scores, missing)
    if matrix.ndim != 2:
        raise UserError(f"scores to resample must be one (runs, tasks) matrix, not of shape {matrix.shape}.")
    return matrix


def packed(scores: Floats) -> Floats:
    """The runs of each task that exist moved to the top of its column, the missing ones below them."""
    return np.take_along_axis(scores, np.argsort(np.isnan(scores), axis=0, kind="stable"), axis=0)


def blocks(replicates: int, cells: int) -> Iterator[int]:
    """Sizes of the blocks in which `replicates` matrices of `cells` scores are resampled."""
    if replicates < 1:
        raise UserError(f"replicates must be at least 1, not {replicates}.")
    size = max(1, BLOCK // cells)
    for start in range(0, replicates, size):
        yield min(size, replicates - start)


def draw_runs(matrix: Floats, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    """Run numbers of shape (size, runs, tasks) for a packed matrix.

    A task with n runs gets n draws from 0 … n - 1; its places below stay themselves, that is, missing.
    """
    counts = np.sum(~np.isnan(matrix), axis=0)
    shape = (size, *matrix.shape)
    if (counts == len(matrix)).all():
        return rng.integers(len(matrix), size=shape)
    place = np.arange(len(matrix))[:, None]
    return np.where(place < counts, rng.integers(counts, size=shape), place)


def pick(scores: Floats, draws: NDArray[np.int64]) -> Floats:
    """Run `draws[b, i, k]` of task k, for every b, i and k."""
    tasks = scores.shape[1]
    return scores.ravel().take(draws * tasks + np.arange(tasks))


def bootstrap(
    scores: ArrayLike,
    statistic: Statistic,
    rng: np.random.Generator,
    *,
    replicates: int = 50_000,
    missing: Missing = "error",
) -> Floats:
    """The statistic of `replicates` resampled (runs, tasks) matrices.

    Args:
        scores: (runs, tasks); leading axes are looked at one by one.
        statistic: A function of (…, runs, tasks), such as `iqm`.
        rng: Draws the resamples.
        replicates: How many resamples.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    matrix = packed(as_matrix(scores, missing))
    return np.concatenate(
        [
            statistic(pick(matrix, draw_runs(matrix, rng, size)), missing=missing)
            for size in blocks(replicates, matrix.size)
        ]
    )


def interval(
    scores: ArrayLike,
    statistic: Statistic,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    replicates: int = 50_000,
    missing: Missing = "error",
) -> Interval:
    """The statistic of a (runs, tasks) matrix with its percentile interval.

    Args:
        scores: (runs, tasks); leading axes are looked at one by one.
        statistic: A function of (…, runs, tasks), such as `iqm`.
        rng: Draws the resamples.
        level: The share that an interval covers.
        replicates: How many resamples.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    matrix = as_matrix(scores, missing)
    lower, upper = limits(bootstrap(matrix, statistic, rng, replicates=replicates, missing=missing), level, matrix)
    return Interval(float(statistic(matrix, missing=missing)), float(lower), float(upper), level)


def intervals(
    scores: Mapping[str, ArrayLike],
    statistics: Mapping[str, Statistic],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    replicates: int = 50_000,
    missing: Missing = "error",
) -> dict[str, dict[str, Interval]]:
    """Every statistic of every algorithm: {algorithm: (runs, tasks)} -> {algorithm: {statistic: Interval}}.

    Args:
        scores: (runs, tasks) by algorithm.
        statistics: Such functions, by name.
        rng: Draws the resamples.
        level: The share that an interval covers.
        replicates: How many resamples.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    return {
        algorithm: {
            name: interval(matrix, statistic, rng, level=level, replicates=replicates, missing=missing)
            for name, statistic in statistics.items()
        }
        for algorithm, matrix in scores.items()
    }


def difference(
    first: ArrayLike,
    second: ArrayLike,
    statistic: Statistic,
    rng: np.random.Generator,
    *,
    paired: bool = False,
    level: float = 0.95,
    replicates: int = 50_000,
    missing: Missing = "error",
) -> Interval:
    """statistic(first) - statistic(second) with its interval; both are (runs, tasks) over the same tasks.

    `paired` draws the same runs for both, for experiments whose row i shares its seed (data subset, initial weights);
    otherwise the two are resampled independently and may have different numbers of runs.

    Args:
        first: (runs, tasks).
        second: (runs, tasks), the same tasks.
        statistic: A function of (…, runs, tasks), such as `iqm`.
        rng: Draws the resamples.
        paired: Run i of both has the same seed: resample them together.
        level: The share that an interval covers.
        replicates: How many resamples.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    a, b = pair(first, second, paired, missing)
    spread = np.concatenate(
        [
            statistic(pick(a, draw_a), missing=missing) - statistic(pick(b, draw_b), missing=missing)
            for draw_a, draw_b in pair_draws(a, b, rng, replicates, paired)
        ]
    )
    lower, upper = limits(spread, level, a, b)
    estimate = statistic(a, missing=missing) - statistic(b, missing=missing)
    return Interval(float(estimate), float(lower), float(upper), level)


def pair(first: ArrayLike, second: ArrayLike, paired: bool, missing: Missing) -> tuple[Floats, Floats]:
    """Both matrices checked and packed; they must have the same tasks, and the same runs where they are paired."""
    a, b = as_matrix(first, missing), as_matrix(second, missing)
    if a.shape[1] != b.shape[1]:
        raise UserError(f"the two algorithms have {a.shape[1]} and {b.shape[1]} tasks: compare them on the same tasks.")
    if paired and (a.shape != b.shape or (np.isnan(a) != np.isnan(b)).any()):
        raise UserError("paired resampling needs the same runs of the same tasks on both sides: use paired=False.")
    return packed(a), packed(b)


def pair_draws(
    a: Floats, b: Floats, rng: np.random.Generator, replicates: int, paired: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Run numbers for two packed matrices, block by block: the same for both, or independent."""
    for size in blocks(replicates, max(a.size, b.size)):
        drawn = draw_runs(a, rng, size)
        yield drawn, drawn if paired else draw_runs(b, rng, size)
