"""What returns the rewards in the data allow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dr3.errors import UserError


class ReturnBounds(NamedTuple):
    """No policy's discounted return from any logged state lies outside, if the data hold the extreme rewards."""

    low: float
    high: float


def return_bounds(
    rewards: ArrayLike, discount: float, *, ends: bool = True, horizon: int | None = None
) -> ReturnBounds:
    """The smallest and largest discounted return: r_min and r_max times (1 - γ^H) / (1 - γ), or 1 / (1 - γ).

    `ends`: whether an episode may end early. Then the least a loss can be repeated is once: a task that costs 1 a step
    has returns up to -1, not only up to -1 / (1 - γ). `horizon` is H, the longest episode there can be; without one
    γ must be below 1. The bounds are the data's: a reward that was never logged can lie beyond them.

    Args:
        rewards: (n,).
        discount: γ.
        ends: Whether an episode may end early.
        horizon: The longest episode, in steps; None where there is none.
    """
    if not 0 <= discount <= 1:
        raise UserError(f"The discount must be between 0 and 1, not {discount}.")
    if horizon is None and discount == 1:
        raise UserError("With discount 1 returns are bounded only by an episode's length: give a horizon.")
    longest = 1 / (1 - discount) if horizon is None else sum(discount**step for step in range(horizon))
    shortest = 1.0 if ends else longest
    low, high = float(np.min(rewards)), float(np.max(rewards))
    return ReturnBounds(low * (longest if low < 0 else shortest), high * (longest if high > 0 else shortest))
