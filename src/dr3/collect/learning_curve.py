"""How well an online agent did while it learned, read from its replay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dr3.data.transitions import Transitions
from dr3.hyperparameters import within


class LearningCurve(NamedTuple):
    """Mean returns of episodes by the step at which they ended."""

    steps: NDArray[np.int64]  # (points,) the last step of each part of the replay
    returns: NDArray[np.float64]  # (points,) mean undiscounted return of its episodes; NaN where none ended
    episodes: NDArray[np.int64]  # (points,) how many those are


def learning_curve(replay: Transitions, *, points: int = 20) -> LearningCurve:
    """Mean return of the episodes that ended in each of `points` equal parts of a replay.

    Episodes that were cut because the replay stops are left out: the time-outs at its end, but for those of a length
    that several episodes have and no time-out exceeds (a time limit). In data of Atari rewards are clipped, and so are
    these returns.

    Args:
        replay: All steps of an online agent, as `collect_dqn` and `collect_sac` write them (not a subset of the rows).
        points: How many parts.

    Returns:
        The curve, with `points` entries in each field.

    Raises:
        UserError: There are fewer steps than points, or no point.
    """
    within("points", points, 1, len(replay))
    ends = np.flatnonzero(np.append(replay.episodes[1:] != replay.episodes[:-1], True))
    lengths = np.diff(ends, prepend=-1)
    returns = np.add.reduceat(replay.rewards.astype(np.float64), ends - lengths + 1)
    cut = replay.timeouts[ends].copy()
    at_limit = cut & (lengths == max(lengths[cut], default=0))
    if at_limit.sum() > 1:
        cut &= ~at_limit
    finished = 0 if cut.all() else len(ends) - int(np.argmin(cut[::-1]))
    steps = np.arange(1, points + 1) * len(replay) // points
    part = np.searchsorted(steps, ends[:finished] + 1)
    count = np.bincount(part, minlength=points)
    total = np.bincount(part, weights=returns[:finished], minlength=points)
    with np.errstate(invalid="ignore"):
        return LearningCurve(steps, total / count, count)
