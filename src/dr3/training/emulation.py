"""Episodes in an emulator, side by side, as the paper's Atari agents were evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dr3.data.transitions import DiscreteActions
from dr3.envs import EmulatedWorld
from dr3.runs.outcomes import outcome_of

if TYPE_CHECKING:
    from dr3.training.evaluation import Policy


@dataclass(frozen=True)
class EmulatedRollouts:
    """Every episode in a copy of its own; the action is random with probability `epsilon`. Returns are raw rewards.

    Seeds of games and random actions follow from the member's seed and the step. A copy whose episode is over plays on
    unseen until all are.
    """

    world: EmulatedWorld
    episodes: int = 10
    epsilon: float = 0.001

    def __call__(self, policy: Policy, *, seed: int, step: int, discount: float) -> dict[str, Any]:
        world, count = self.world, self.episodes
        shape = (*world.frame_shape, world.stack)
        policy.check_observations(shape)
        policy.check_actions(DiscreteActions(world.actions))
        random = np.random.default_rng((seed, step))
        games = world.open(count)
        observations = np.zeros((count, *shape), np.uint8)
        observations[..., -1] = games.reset(random.integers(2**31, size=count))
        returns, discounted, lengths = np.zeros(count), np.zeros(count), np.zeros(count, np.int64)
        over, weight = np.zeros(count, np.bool_), 1.0
        while not over.all():
            explore = random.random(count) < self.epsilon
            actions = np.where(explore, random.integers(world.actions, size=count), policy(observations))
            moves = games.step(actions)
            returns += np.where(over, 0.0, moves.rewards)
            discounted += weight * np.where(over, 0.0, moves.rewards)
            lengths += ~over
            weight *= discount
            over |= moves.terminals | moves.timeouts
            observations = np.concatenate([observations[..., 1:], moves.frames[..., None]], axis=-1)
        games.close()
        return outcome_of(returns, discounted, lengths)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "emulated rollouts",
            "world": self.world.name,
            "episodes": self.episodes,
            "epsilon": self.epsilon,
        }
