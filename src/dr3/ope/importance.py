"""Importance sampling and doubly robust: logged rewards, weighed by how much likelier a policy makes them.

ρ_t = Π_{i ≤ t} π(a_i|s_i) / β(a_i|s_i), β being the policy that logged. In float64, an episode a row; behind its
end an episode's weight stays and its rewards are 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from dr3.errors import UserError
from dr3.stats import Interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Episodes:
    """Logged rewards and ratios π / β, an episode a row, padded to the longest: (M, T)."""

    rewards: Floats
    ratios: Floats  # 1 behind the end
    lengths: NDArray[np.intp]  # (M,)

    @classmethod
    def of(cls, rewards: ArrayLike, ratios: ArrayLike, episodes: ArrayLike) -> Episodes:
        """From columns (N,), the rows of an episode one after another."""
        number = np.asarray(episodes)
        starts = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
        lengths = np.diff(np.append(starts, len(number)))
        return cls(padded(rewards, lengths, 0.0), padded(ratios, lengths, 1.0), lengths)

    @property
    def weights(self) -> Floats:
        """ρ_t: (M, T)."""
        return np.cumprod(self.ratios, axis=1, dtype=np.float64)


def padded(column: ArrayLike, lengths: NDArray[np.intp], fill: float) -> Floats:
    """A column (N,) with an episode a row: (M, T)."""
    rows = np.full((len(lengths), int(lengths.max())), fill)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = column
    return rows


def per_decision(episodes: Episodes, discount: float) -> Interval:
    """Per-decision importance sampling (Precup, Sutton and Singh, 2000): the mean over episodes of Σ_t γ^t ρ_t r_t.

    Args:
        episodes: Rewards and ratios.
        discount: γ.
    """
    return mean_interval((episodes.weights * episodes.rewards) @ _powers(episodes, discount))


def weighted(episodes: Episodes, discount: float) -> Interval:
    """Weighted per-decision importance sampling: Σ_t γ^t Σ_i ρ_it r_it / Σ_i ρ_it. Biased, with far less variance.

    A step at which no episode has any weight left adds nothing.

    Args:
        episodes: Rewards and ratios.
        discount: γ.
    """
    weights, powers = episodes.weights, _powers(episodes, discount)
    mean = weights.mean(axis=0)
    known = mean > 0
    shares = np.divide(weights, mean, out=np.zeros_like(weights), where=known)
    at_each = (shares * episodes.rewards).mean(axis=0)
    # A ratio of means is, to first order, a mean of these over episodes.
    around = (shares * (episodes.rewards - at_each)) @ powers
    return mean_interval(around, centre=float(at_each @ powers))


def doubly_robust(
    episodes: Episodes, discount: float, q: ArrayLike, v: ArrayLike, v_next: ArrayLike, terminals: ArrayLike
) -> Interval:
    """V̂(s_0) + Σ_t γ^t ρ_t (r_t + γ V̂(s_{t+1}) - Q̂(s_t, a_t)), the mean over episodes (Jiang and Li, 2016).

    Right where either the ratios or the critic are. Where an episode was cut, V̂ stands for what came after.

    Args:
        episodes: Rewards and ratios.
        discount: γ.
        q: Q̂(s, a) of the logged rows, (N,).
        v: V̂(s) of the same, (N,).
        v_next: V̂(s'), (N,).
        terminals: Where nothing follows, (N,).
    """
    lengths = episodes.lengths
    after = np.where(np.asarray(terminals, np.bool_), 0.0, np.asarray(v_next, np.float64))
    error = episodes.rewards + padded(discount * after - np.asarray(q, np.float64), lengths, 0.0)
    first = padded(v, lengths, 0.0)[:, 0]
    return mean_interval(first + (episodes.weights * error) @ _powers(episodes, discount))


def effective_sample_size(episodes: Episodes) -> float:
    """(Σ_i ρ_i)² / Σ_i ρ_i² with the weights of whole episodes: as how many episodes of its own the log counts for it.

    Args:
        episodes: Rewards and ratios.
    """
    whole = episodes.weights[:, -1]
    squares = float((whole**2).sum())
    return float(whole.sum()) ** 2 / squares if squares > 0 else 0.0


def mean_interval(of_episodes: ArrayLike, *, centre: float | None = None, level: float = 0.95) -> Interval:
    """The mean over episodes with Student's interval; without limits where there are fewer than three.

    Args:
        of_episodes: A number for each episode, (M,).
        centre: What the interval is around, where it is not their mean.
        level: The share that an interval covers.
    """
    each = np.asarray(of_episodes, np.float64)
    if each.ndim != 1 or len(each) == 0:
        raise UserError(f"A mean over episodes needs one number for each, not an array of shape {each.shape}.")
    middle = float(each.mean()) if centre is None else centre
    if len(each) < 3:
        return Interval(middle, float("nan"), float("nan"), level)
    half = float(student.ppf(0.5 + level / 2, len(each) - 1) * each.std(ddof=1) / np.sqrt(len(each)))
    return Interval(middle, middle - half, middle + half, level)


def bootstrap_interval(estimate: float, bootstrapped: ArrayLike, episodes: int, *, level: float = 0.95) -> Interval:
    """An estimate, give or take Student's quantile times the spread of its bootstraps over episodes.

    Few bootstraps, or few episodes, know their own spread badly: the degrees of freedom are one less than the fewer.

    Args:
        estimate: What was found.
        bootstrapped: The same of each bootstrap, (B,).
        episodes: How many were resampled.
        level: The share that an interval covers.
    """
    values = np.asarray(bootstrapped, np.float64)
    if not np.isfinite(estimate) or not np.isfinite(values).all() or episodes < 3:
        return Interval(estimate, float("nan"), float("nan"), level)
    half = float(student.ppf(0.5 + level / 2, min(len(values), episodes) - 1) * values.std(ddof=1))
    return Interval(estimate, estimate - half, estimate + half, level)


def _powers(episodes: Episodes, discount: float) -> Floats:
    return discount ** np.arange(episodes.rewards.shape[1])
