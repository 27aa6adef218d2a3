"""Ways to normalise returns, the paper's where there is one: 0 for a random policy, 100 for a good one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from dr3.envs import expected_return, gridworld, optimal_policy
from dr3.errors import UserError
from dr3.paper.experiments.bundle import Bundle
from dr3.paper.scores import score_range
from dr3.runs.outcomes import RETURN, SUCCESS


@dataclass(frozen=True)
class Replays:
    """As the paper's Atari scores: 0 is a random agent, 100 the mean return over the replay."""

    metric: ClassVar[str] = RETURN

    def limits(self, bundles: Sequence[Bundle]) -> tuple[float, float]:
        found = [bundle.record["limits"] for bundle in bundles]
        return float(np.mean([one["random"] for one in found])), float(np.mean([one["replay"] for one in found]))


@dataclass(frozen=True)
class Published:
    """The returns that the paper, or D4RL, normalises a task with."""

    metric: ClassVar[str] = RETURN

    task: str

    def limits(self, bundles: Sequence[Bundle] = ()) -> tuple[float, float]:
        limits = score_range(self.task)
        if limits is None:
            raise UserError(f"The paper has no normalised scores for {self.task!r}.")
        return limits


@dataclass(frozen=True)
class Exact:
    """In a gridworld both are known: 0 is the uniform policy, 100 the optimal one."""

    metric: ClassVar[str] = RETURN

    world: str
    discount: float = 0.95

    def limits(self, bundles: Sequence[Bundle] = ()) -> tuple[float, float]:
        return _gridworld_limits(self.world, self.discount)


@dataclass(frozen=True)
class Percent:
    """Of episodes that reach their goal, where that pays 1 and nothing else pays."""

    metric: ClassVar[str] = RETURN

    def limits(self, bundles: Sequence[Bundle] = ()) -> tuple[float, float]:
        return 0.0, 1.0


@dataclass(frozen=True)
class Successes:
    """Percent of episodes that the world calls successful, where success may pay in several steps."""

    metric: ClassVar[str] = SUCCESS

    def limits(self, bundles: Sequence[Bundle] = ()) -> tuple[float, float]:
        return 0.0, 1.0


@cache
def _gridworld_limits(name: str, discount: float) -> tuple[float, float]:
    world = gridworld(name)
    actions = world.transitions.shape[1]
    policies = (np.full((len(world.rewards), actions), 1 / actions), optimal_policy(world, discount))
    low, high = (
        expected_return(world.transitions, world.rewards, policy, world.start, world.horizon) for policy in policies
    )
    return low, high
