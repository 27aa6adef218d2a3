"""Scores over the course of training: the paper's stability measure, and sample-efficiency curves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dr3.errors import UserError
from dr3.stats.aggregates import Floats, Missing, Statistic, iqm
from dr3.stats.resampling import Band, interval


def evenly_spaced(available: int, count: int | None) -> NDArray[np.int64]:
    """Which of `available` checkpoints to use: the ends of `count` equal parts of training, so the last is always in.

    With `count=20` of 100 iterations these are iterations 5, 10, …, 100, as in the paper's per-game tables. Fewer
    checkpoints than `count`, or `count=None`: all of them.

    Args:
        available: How many checkpoints there are.
        count: How many checkpoints to use; None is all.
    """
    if count is not None and count < 1:
        raise UserError(f"the number of checkpoints to average must be at least 1, not {count}.")
    if count is None or count >= available:
        return np.arange(available)
    return np.round(np.arange(1, count + 1) * available / count).astype(np.int64) - 1


def average_over_checkpoints(scores: ArrayLike, *, count: int | None = 20, missing: Missing = "error") -> Floats:
    """Average performance over training, the paper's measure of stability: (runs, tasks, checkpoints) -> (runs, tasks).

    A run that lacks some checkpoints is refused, or with `missing="ignore"` averaged over those it has; a run that has
    none stays NaN.

    Args:
        scores: (runs, tasks, checkpoints).
        count: How many checkpoints to use; None is all.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    cube = _cube(scores)[:, :, evenly_spaced(np.shape(scores)[2], count)]
    present = ~np.isnan(cube)
    if missing == "error" and not present.all():
        raise UserError(
            f"{(~present).sum()} of {present.size} checkpoints are missing: complete the runs or say missing='ignore'."
        )
    total, number = np.sum(cube, axis=2, where=present), present.sum(axis=2)
    return np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0)


def forward_fill(curves: NDArray[np.float64]) -> Floats:
    """Every gap along the last axis, (…, T), filled with what came last before it.

    A member that diverged is frozen, so it stays what was last known of it. A gap that nothing comes before stays one.

    Args:
        curves: (…, T), NaN where there is a gap.
    """
    known = np.where(np.isfinite(curves), np.arange(curves.shape[-1]), 0)
    return np.take_along_axis(curves, np.maximum.accumulate(known, axis=-1), axis=-1)


def efficiency_curve(
    scores: ArrayLike,
    steps: ArrayLike,
    rng: np.random.Generator,
    *,
    statistic: Statistic = iqm,
    level: float = 0.95,
    replicates: int = 2_000,
    missing: Missing = "error",
) -> Band:
    """IQM (or another statistic) at each checkpoint, with pointwise limits.

    Shapes: scores (runs, tasks, checkpoints), steps (checkpoints,).

    Args:
        scores: (runs, tasks, checkpoints).
        steps: The step of each checkpoint, (T,).
        rng: Draws the resamples.
        statistic: A function of (…, runs, tasks), such as `iqm`.
        level: The share that an interval covers.
        replicates: How many resamples.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    cube, axis = _cube(scores), np.asarray(steps, dtype=np.float64)
    if axis.shape != (cube.shape[2],):
        raise UserError(f"there are {cube.shape[2]} checkpoints but steps has shape {axis.shape}.")
    points = [
        interval(cube[:, :, k], statistic, rng, level=level, replicates=replicates, missing=missing)
        for k in range(cube.shape[2])
    ]
    estimate, lower, upper = (np.array([getattr(p, name) for p in points]) for name in ("estimate", "lower", "upper"))
    return Band(axis, estimate, lower, upper, level)


def _cube(scores: ArrayLike) -> Floats:
    cube = np.asarray(scores, dtype=np.float64)
    if cube.ndim != 3 or 0 in cube.shape:
        raise UserError(f"scores must be runs x tasks x checkpoints, not of shape {cube.shape}.")
    return cube
