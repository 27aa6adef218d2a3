"""How often one algorithm beats another: the average probability of improvement (appendix A.8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dr3.stats.aggregates import Floats, Missing
from dr3.stats.resampling import Interval, limits, pair, pair_draws


@dataclass(frozen=True)
class Improvement:
    """P(first > second) averaged over tasks, its interval, its value on each task, and the paper's two verdicts.

    Where a task has a single run on either side there is no interval, and both verdicts are False.
    """

    probability: Interval
    per_task: tuple[float, ...]

    @property
    def significant(self) -> bool:
        """The lower limit is above 0.5: the improvement is not chance."""
        return self.probability.lower > 0.5

    @property
    def meaningful(self) -> bool:
        """The upper limit is above 0.75 (the criterion the paper takes from Bouthillier et al.).

        It asks whether a large improvement is possible, not whether it is likely: few runs make wide intervals, and
        wide intervals pass. Read it only together with `significant`.
        """
        return self.probability.upper > 0.75

    @property
    def verdict(self) -> str:
        """Both in words; "–" where there is no interval. What is not significant is not called meaningful either."""
        if not self.probability.has_limits:
            return "–"
        if not self.significant:
            return "not significant"
        return "significant and meaningful" if self.meaningful else "significant"


def wins(first: Floats, second: Floats) -> Floats:
    """S of appendix A.8 for all pairs of runs: (runs, tasks), (runs', tasks) -> (tasks, runs, runs').

    1 where the first is better, 1/2 where they are equal, 0 where it is worse or where either is missing.
    """
    x, y = first.T[:, :, None], second.T[:, None, :]
    return (x > y) + 0.5 * (x == y)


def improvement_by_task(first: ArrayLike, second: ArrayLike, *, missing: Missing = "error") -> Floats:
    """The Mann-Whitney statistic U / (m n) of each task: the chance that a run of `first` beats a run of `second`.

    Args:
        first: (runs, tasks).
        second: (runs, tasks), the same tasks.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    a, b = pair(first, second, False, missing)
    return wins(a, b).sum(axis=(1, 2)) / _pairs(a, b)


def probability_of_improvement(first: ArrayLike, second: ArrayLike, *, missing: Missing = "error") -> float:
    """P(first > second), averaged over tasks; ties count one half.

    Args:
        first: (runs, tasks).
        second: (runs, tasks), the same tasks.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    return float(improvement_by_task(first, second, missing=missing).mean())


def improvement(
    first: ArrayLike,
    second: ArrayLike,
    rng: np.random.Generator,
    *,
    paired: bool = False,
    level: float = 0.95,
    replicates: int = 50_000,
    missing: Missing = "error",
) -> Improvement:
    """The probability of improvement of (runs, tasks) `first` over `second` with its bootstrap interval.

    `paired` as in `difference`: the same seeds are drawn on both sides.

    Args:
        first: (runs, tasks).
        second: (runs, tasks), the same tasks.
        rng: Draws the resamples.
        paired: Run i of both has the same seed: resample them together.
        level: The share that an interval covers.
        replicates: How many resamples.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    a, b = pair(first, second, paired, missing)
    table, pairs, task = wins(a, b), _pairs(a, b), np.arange(a.shape[1])
    spread = []
    for draw_a, draw_b in pair_draws(a, b, rng, replicates, paired):
        # How often each run of `second` is beaten by the drawn runs of `first`; then the sum over the drawn `second`.
        beaten = table[task, draw_a].sum(axis=1)  # (block, tasks, runs')
        spread.append((np.take_along_axis(beaten, draw_b.swapaxes(1, 2), axis=2).sum(axis=2) / pairs).mean(axis=1))
    lower, upper = limits(np.concatenate(spread), level, a, b)
    by_task = improvement_by_task(first, second, missing=missing)
    return Improvement(
        Interval(float(by_task.mean()), float(lower), float(upper), level), tuple(float(p) for p in by_task)
    )


def _pairs(a: Floats, b: Floats) -> Floats:
    """How many pairs of runs each task has."""
    return np.sum(~np.isnan(a), axis=0) * np.sum(~np.isnan(b), axis=0).astype(np.float64)
