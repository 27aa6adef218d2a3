"""The policies that log data in the gridworlds, as exact (256, 5) probabilities."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dr3.envs.gridworld import Gridworld
from dr3.envs.tabular import Floats, greedy_policy, optimal_values
from dr3.errors import UserError

BEHAVIORS = ("mixed", "random", "optimal")
OPTIMAL_SHARE = 0.7


def behavior_policy(world: Gridworld, behavior: str, *, discount: float = 0.95) -> Floats:
    """One of `BEHAVIORS`; optimal is with respect to `discount` and the noisy transition matrix.

    Args:
        world: The gridworld.
        behavior: One of `BEHAVIORS`.
        discount: γ.
    """
    if behavior == "mixed":
        return mixed_policy(world, discount)
    if behavior == "random":
        return np.full(world.transitions.shape[:2], 1 / world.transitions.shape[1])
    if behavior == "optimal":
        return optimal_policy(world, discount)
    raise UserError(f"There is no behaviour policy named {behavior!r}; choose one of {', '.join(BEHAVIORS)}.")


def optimal_policy(world: Gridworld, discount: float = 0.95) -> Floats:
    """The greedy policy of Q*; a cell with several best actions takes the first of them.

    Args:
        world: The gridworld.
        discount: γ.
    """
    return _optimal_policy(world, discount).copy()


@lru_cache(maxsize=16)  # the runs of a sweep in one process sample from the same few worlds, at 0.2 s each
def _optimal_policy(world: Gridworld, discount: float) -> Floats:
    return greedy_policy(optimal_values(world.transitions, world.rewards, discount))


def mixed_policy(world: Gridworld, discount: float = 0.95) -> Floats:
    """The behaviour of appendix A.6: the optimal action with probability 0.7, the other four share 0.3 evenly.

    Where several actions are optimal only the first one counts as such, so the "suboptimal" share can be as good.

    Args:
        world: The gridworld.
        discount: γ.
    """
    optimal = optimal_policy(world, discount)
    return np.where(optimal == 1, OPTIMAL_SHARE, (1 - OPTIMAL_SHARE) / (optimal.shape[1] - 1))
