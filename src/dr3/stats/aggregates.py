"""One number for many runs of many tasks: the aggregates of section 5 of the paper.

Every function takes scores of shape (..., runs, tasks) and returns shape (...): a bootstrap hands in all its replicates
at once. A missing run is NaN. `missing="error"` refuses NaN, `missing="ignore"` uses the runs there are; a task without
any run is refused either way, because leaving it out would change the question.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dr3.errors import UserError

Missing = Literal["error", "ignore"]
Floats = NDArray[np.float64]


class Statistic(Protocol):
    """What can be bootstrapped: (..., runs, tasks) -> (...)."""

    def __call__(self, scores: Floats, /, *, missing: Missing) -> Floats: ...


def checked(scores: ArrayLike, missing: Missing) -> Floats:
    """`scores` as floats of shape (..., runs, tasks), with NaN only where `missing` allows it."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim < 2 or 0 in array.shape[-2:]:
        raise UserError(f"scores must be runs x tasks with at least one of each, not of shape {array.shape}.")
    if missing not in ("error", "ignore"):
        raise UserError(f'missing must be "error" or "ignore", not {missing!r}.')
    if not np.isfinite(array).all():
        absent = np.isnan(array)
        if np.isinf(array).any():
            raise UserError("scores hold an infinite value: look at that run before averaging over it.")
        if missing == "error":
            raise UserError(
                f"{absent.sum()} of {array.size} scores are missing (NaN): complete the runs or say missing='ignore'."
            )
        if absent.all(axis=-2).any():
            task = int(np.argwhere(absent.all(axis=-2))[0][-1])
            raise UserError(f"task number {task} has no run at all: remove it from every algorithm, or run it.")
    return array


def iqm(scores: ArrayLike, *, missing: Missing = "error") -> Floats:
    """Interquartile mean: the mean of the middle half of all runs of all tasks, pooled (appendix E).

    Of n scores floor(n / 4) are cut at each end. When runs are missing, a task with fewer runs weighs less.

    Args:
        scores: (runs, tasks); leading axes are looked at one by one.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    array = checked(scores, missing)
    ordered = np.sort(array.reshape(*array.shape[:-2], -1), axis=-1)  # NaN sorts behind everything
    if not np.isnan(ordered[..., -1]).any():
        cut = ordered.shape[-1] // 4
        return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)
    count = np.sum(~np.isnan(ordered), axis=-1, keepdims=True)
    place = np.arange(ordered.shape[-1])
    middle = (place >= count // 4) & (place < count - count // 4)
    return np.sum(ordered, axis=-1, where=middle) / middle.sum(axis=-1)


def task_means(scores: ArrayLike, *, missing: Missing = "error") -> Floats:
    """The mean over the runs of each task: (..., runs, tasks) -> (..., tasks).

    Args:
        scores: (runs, tasks); leading axes are looked at one by one.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    array = checked(scores, missing)
    present = ~np.isnan(array)
    return np.sum(array, axis=-2, where=present) / present.sum(axis=-2)


def median(scores: ArrayLike, *, missing: Missing = "error") -> Floats:
    """The median over tasks of the mean over runs.

    Args:
        scores: (runs, tasks); leading axes are looked at one by one.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    return np.median(task_means(scores, missing=missing), axis=-1)


def mean(scores: ArrayLike, *, missing: Missing = "error") -> Floats:
    """The mean over tasks of the mean over runs: every task weighs the same, however many runs it has.

    Args:
        scores: (runs, tasks); leading axes are looked at one by one.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    return task_means(scores, missing=missing).mean(axis=-1)


def optimality_gap(scores: ArrayLike, *, threshold: float = 100.0, missing: Missing = "error") -> Floats:
    """By how much the scores stay below `threshold`, those above it counting as having just reached it.

    The paper's scores are in percent, hence 100; for scores in fractions the threshold is 1 (rliable's default).

    Args:
        scores: (runs, tasks); leading axes are looked at one by one.
        threshold: The score that is good enough.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    return threshold - task_means(np.minimum(checked(scores, missing), threshold), missing=missing).mean(axis=-1)
