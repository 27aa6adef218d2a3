"""Trying a learned policy where there is a world to try it in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dr3.envs import GRIDWORLDS, Gridworld, expected_return, gridworld, policy_values

Policy = Callable[[NDArray[Any]], NDArray[Any]]  # (n, *shape) observations -> (n, …) actions


class Evaluator(Protocol):
    """Gives the raw returns of a policy, one per episode, and whatever else it knows."""

    def __call__(self, policy: Policy, *, seed: int, step: int, discount: float) -> dict[str, Any]: ...

    def describe(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class ExactGridworld:
    """The exact expected return of a policy: nothing is rolled out."""

    world: Gridworld

    def __call__(self, policy: Policy, *, seed: int, step: int, discount: float) -> dict[str, Any]:
        world = self.world
        chosen = np.eye(world.transitions.shape[1])[policy(world.observations)]
        episode = expected_return(world.transitions, world.rewards, chosen, world.start, world.horizon)
        forever = policy_values(world.transitions, world.rewards, chosen, discount)
        value = float(forever[world.start] @ chosen[world.start])
        return {"returns": [episode], "evaluation/return": episode, "evaluation/discounted_value": value}

    def describe(self) -> dict[str, Any]:
        return {"kind": "exact gridworld", "world": self.world.name, "horizon": self.world.horizon}


@dataclass(frozen=True)
class Rollouts:
    """Episodes in a Gymnasium environment. Their seeds follow from the member's seed, the step and the episode."""

    env: str
    episodes: int = 10

    def __call__(self, policy: Policy, *, seed: int, step: int, discount: float) -> dict[str, Any]:
        import gymnasium

        env = gymnasium.make(self.env)
        returns, discounted = [], []
        for episode in range(self.episodes):
            start = np.random.SeedSequence((seed, step, episode)).generate_state(1)[0]
            observation, _ = env.reset(seed=int(start))
            total, value, weight, done = 0.0, 0.0, 1.0, False
            while not done:
                observation, reward, terminated, truncated, _ = env.step(policy(np.asarray(observation)[None])[0])
                total += float(reward)
                value += weight * float(reward)
                weight *= discount
                done = terminated or truncated
            returns.append(total)
            discounted.append(value)
        env.close()
        return {
            "returns": returns,
            "evaluation/return": float(np.mean(returns)),
            "evaluation/discounted_value": float(np.mean(discounted)),
        }

    def describe(self) -> dict[str, Any]:
        return {"kind": "rollouts", "env": self.env, "episodes": self.episodes}


def evaluator_for(env: str | Gridworld | Evaluator, *, episodes: int = 10) -> Evaluator:
    """The way to try a policy: exactly in a gridworld, by episodes in anything Gymnasium can make."""
    if isinstance(env, Gridworld):
        return ExactGridworld(env)
    if isinstance(env, str):
        return ExactGridworld(gridworld(env)) if env in GRIDWORLDS else _rollouts(env, episodes)
    return env


def _rollouts(env: str, episodes: int) -> Rollouts:
    from dr3.errors import UserError

    try:
        import gymnasium
    except ImportError:
        raise UserError(f"Trying a policy in {env} needs Gymnasium: pip install 'dr3[envs]'.") from None
    try:
        gymnasium.make(env).close()
    except gymnasium.error.Error as error:
        known = ", ".join(GRIDWORLDS)
        raise UserError(f"There is no world {env!r}, neither of {known} nor in Gymnasium ({error}).") from None
    return Rollouts(env, episodes)
