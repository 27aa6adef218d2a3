"""Trying a learned policy where there is a world to try it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from dr3.envs import (
    ATARI,
    GRIDWORLDS,
    MINATAR,
    Atari,
    CompiledWorld,
    Gridworld,
    MinAtar,
    atari,
    expected_return,
    gridworld,
    minatar,
    policy_values,
)
from dr3.errors import UserError
from dr3.methods import Method
from dr3.training.emulation import EmulatedRollouts
from dr3.training.rollouts import play

EVALUATION_STREAM = 4  # beside those of the training loop


@dataclass(frozen=True)
class Policy:
    """A learned policy. Call it with numpy observations (n, *shape) for actions; a compiled world takes its parts."""

    method: Method
    critic: Any
    observation_shape: tuple[int, ...]

    def __call__(self, observations: NDArray[Any]) -> NDArray[Any]:
        self.check(observations.shape[1:])
        return np.asarray(_act(self.method, self.critic, observations))

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse a world whose observations are not those of the data."""
        if shape != self.observation_shape:
            raise UserError(
                f"The data's observations have the shape {self.observation_shape}, those of the world that policies "
                f"are tried in {shape}; name another env, or none."
            )


@jax.jit
def _act(method: Method, critic: Any, observations: Array) -> Array:
    return method.act(critic, observations)


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


@dataclass(frozen=True)
class CompiledRollouts:
    """Episodes side by side in one compiled program, for worlds that are compiled themselves.

    The action is random with probability `epsilon` (0.001, as the paper's Atari agents). An episode that is not
    over after `limit` steps is cut there: a good Breakout player could go on for ever.
    """

    world: CompiledWorld
    episodes: int = 10
    epsilon: float = 0.001
    limit: int = 5_000

    def __call__(self, policy: Policy, *, seed: int, step: int, discount: float) -> dict[str, Any]:
        policy.check(self.world.observation_shape)
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), EVALUATION_STREAM), step)
        outcome = play(
            policy.method,
            policy.critic,
            key,
            self.epsilon,
            discount,
            world=self.world,
            episodes=self.episodes,
            limit=self.limit,
        )
        returns, discounted, lengths = (np.asarray(column, np.float64) for column in outcome)
        return {
            "returns": returns.tolist(),
            "evaluation/return": float(returns.mean()),
            "evaluation/discounted_value": float(discounted.mean()),
            "evaluation/length": float(lengths.mean()),
        }

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "compiled rollouts",
            "world": self.world.name,
            "episodes": self.episodes,
            "epsilon": self.epsilon,
            "limit": self.limit,
        }


def evaluator_for(env: str | Gridworld | MinAtar | Atari | Evaluator, *, episodes: int = 10) -> Evaluator:
    """The way to try a policy: exactly in a gridworld, by episodes in MinAtar, Atari and what Gymnasium can make."""
    if isinstance(env, Gridworld):
        return ExactGridworld(env)
    if isinstance(env, MinAtar):
        return CompiledRollouts(env, episodes)
    if isinstance(env, str) and env.startswith("minatar/"):
        return CompiledRollouts(minatar(env), episodes)
    if isinstance(env, Atari):
        return EmulatedRollouts(env, episodes)
    if isinstance(env, str) and env.startswith("atari/"):
        return EmulatedRollouts(atari(env), episodes)
    if isinstance(env, str):
        return ExactGridworld(gridworld(env)) if env in GRIDWORLDS else _rollouts(env, episodes)
    return env


def _rollouts(env: str, episodes: int) -> Rollouts:
    try:
        import gymnasium
    except ImportError:
        raise UserError(f"Trying a policy in {env} needs Gymnasium: pip install 'dr3[envs]'.") from None
    try:
        gymnasium.make(env).close()
    except (gymnasium.error.Error, ModuleNotFoundError) as error:  # the latter where the name holds a colon
        known = ", ".join((*GRIDWORLDS, *MINATAR, *ATARI))
        raise UserError(f"There is no world {env!r}, neither of {known} nor in Gymnasium ({error}).") from None
    return Rollouts(env, episodes)
