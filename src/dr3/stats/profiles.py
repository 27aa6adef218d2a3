"""Performance profiles: which share of the runs scores more than tau, for every tau."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dr3.errors import UserError
from dr3.stats.aggregates import Floats, Missing
from dr3.stats.resampling import Band, as_matrix, blocks, draw_runs, limits, packed, pick


def performance_profile(
    scores: ArrayLike,
    thresholds: ArrayLike,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    replicates: int = 2_000,
    missing: Missing = "error",
) -> Band:
    """The share of all runs of all tasks strictly above each threshold, with pointwise limits.

    Shapes: scores (runs, tasks), thresholds (points,) in increasing order.

    Args:
        scores: (runs, tasks); leading axes are looked at one by one.
        thresholds: Scores, in increasing order.
        rng: Draws the resamples.
        level: The share that an interval covers.
        replicates: How many resamples.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    taus = np.asarray(thresholds, dtype=np.float64)
    if taus.ndim != 1 or taus.size == 0 or not np.all(np.diff(taus) > 0):
        raise UserError("thresholds must be a list of increasing numbers.")
    matrix = packed(as_matrix(scores, missing))
    present = np.isfinite(matrix)
    # A score stands above the first `rank` thresholds, so one count by rank gives all points of the profile at once.
    rank = np.where(present, np.searchsorted(taus, matrix, side="left"), np.nan)
    estimate = _share_above(rank[None], taus.size)[0]
    spread = [
        _share_above(pick(rank, draw_runs(rank, rng, size)), taus.size) for size in blocks(replicates, matrix.size)
    ]
    lower, upper = limits(np.concatenate(spread), level, matrix)
    return Band(taus, estimate, lower, upper, level)


def _share_above(ranks: Floats, points: int) -> Floats:
    """(block, runs, tasks) ranks, NaN where missing -> (block, points) shares of the present runs above each point."""
    block = len(ranks)
    flat = ranks.reshape(block, -1)
    present = ~np.isnan(flat)
    cell = np.arange(block)[:, None] * (points + 1) + np.where(present, flat, 0).astype(np.int64)
    histogram = np.bincount(cell[present], minlength=block * (points + 1)).reshape(block, points + 1)
    above = histogram[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    return above / present.sum(axis=1, keepdims=True)
