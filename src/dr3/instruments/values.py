"""What Q-values say, against what the rewards in the data allow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dr3.data.return_bounds import ReturnBounds


class ValueStatistics(NamedTuple):
    """Of Q(s, a) on a set of pairs."""

    mean: float
    spread: float  # standard deviation
    least: float
    most: float
    outside: float  # share of values beyond the bounds by more than the slack


def value_statistics(values: ArrayLike, bounds: ReturnBounds, *, slack: float = 0.05) -> ValueStatistics:
    """Mean, spread, extremes, and how many values no policy could earn.

    Args:
        values: Q(s, a), (n,).
        bounds: What a policy could earn at least and at most.
        slack: By which share of their distance the bounds are widened on both sides: a fit may overshoot a little.
    """
    q = np.asarray(values, np.float64)
    margin = slack * (bounds.high - bounds.low)
    outside = ~((q >= bounds.low - margin) & (q <= bounds.high + margin))  # NaN is outside
    with np.errstate(invalid="ignore", over="ignore"):  # a spread of infinities is NaN
        spread = float(q.std())
    return ValueStatistics(float(q.mean()), spread, float(q.min()), float(q.max()), float(outside.mean()))


def td_error(values: ArrayLike, targets: ArrayLike) -> float:
    """Mean of (Q(s, a) - target)²: values (…, n), an ensemble's axis first, and targets (n,), as in a `Backup`.

    On episodes that were held out it is an honest error of prediction; it says nothing about the policy by itself.

    Args:
        values: Q(s, a), (…, n).
        targets: What each is held against, (n,).
    """
    return float(((np.asarray(values, np.float64) - np.asarray(targets)) ** 2).mean())
