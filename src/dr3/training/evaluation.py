"""Trying a learned policy where there is a world to try it in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from dr3.data.transitions import ContinuousActions, DiscreteActions
from dr3.envs import (
    Atari,
    CompiledWorld,
    Gridworld,
    MinAtar,
    atari,
    expected_return,
    find_task,
    is_gridworld,
    make_world,
    minatar,
    policy_values,
    spelled_gridworld,
)
from dr3.envs.parts import Parts
from dr3.errors import UserError
from dr3.hyperparameters import whole_number
from dr3.methods import Method, Spec
from dr3.methods.acting import decide
from dr3.runs.outcomes import DISCOUNTED_VALUE, NORMALISED_SCORE, RETURN, SUCCESS, outcome_of
from dr3.training.emulation import EmulatedRollouts
from dr3.training.rollouts import play
from dr3.training.side_by_side import actions_of, parts_of_world, play_side_by_side

EVALUATION_STREAM = 4  # beside those of the training loop


@dataclass(frozen=True)
class Policy:
    """A learned policy. Call it with numpy observations (n, *shape) for actions; a compiled world takes its parts.

    `masks` (n, A) are true where an action is allowed: it takes the best of those.
    """

    method: Method
    critic: Any
    spec: Spec  # what it was made for: the data's observations and actions

    def __call__(self, observations: NDArray[Any], masks: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        self.check_observations(observations.shape[1:])
        if masks is not None and isinstance(self.spec.action_space, DiscreteActions):
            masks = masks[:, : self.spec.action_space.count]  # a world may know more actions than the data
        return np.asarray(_act(self.method, self.critic, observations, masks, spec=self.spec))

    def check_observations(self, shape: tuple[int, ...]) -> None:
        """Refuse a world whose observations are not those of the data.

        Args:
            shape: Of one observation.
        """
        if shape != self.spec.observation_shape:
            raise UserError(
                f"The data's observations have the shape {self.spec.observation_shape}, those of the world that "
                f"policies are evaluated in {shape}; name another env, or none."
            )

    def check_parts(self, world: Parts | None) -> None:
        """Refuse a world whose observations have other parts than those of the data.

        Args:
            world: What the policy is to act in.
        """
        if world != self.spec.parts:
            raise UserError(
                "The parts of the data's observations are not those of the world that policies are tried in."
            )

    def check_actions(self, world: DiscreteActions | ContinuousActions) -> None:
        """Refuse a world that cannot carry out what the policy may do.

        Args:
            world: What the policy is to act in.
        """
        mine = self.spec.action_space
        if isinstance(mine, DiscreteActions):
            fits = mine.within(world)
        else:
            fits = isinstance(world, ContinuousActions) and mine.size == world.size
        if not fits:
            raise UserError(
                f"The data's actions are {_in_words(mine)}, those of the world that policies are evaluated in "
                f"{_in_words(world)}; name another env, or none."
            )


def _in_words(space: DiscreteActions | ContinuousActions) -> str:
    if isinstance(space, DiscreteActions):
        return f"integers from 0 to {space.count - 1}"
    return "single numbers" if space.size == 1 else f"vectors of {space.size} numbers"


@partial(jax.jit, static_argnames="spec")
def _act(method: Method, critic: Any, observations: Array, masks: Array | None, *, spec: Spec) -> Array:
    return decide(method, critic, spec, observations, masks)


@runtime_checkable
class Evaluator(Protocol):
    """Gives the raw returns of a policy, one per episode, and whatever else it knows."""

    def __call__(self, policy: Policy, *, seed: int, step: int, discount: float) -> dict[str, Any]:
        """Evaluate a policy once.

        Args:
            policy: Called with observations (n, *shape), it gives actions.
            seed: The member's.
            step: The updates that it has made.
            discount: γ of its method, for a discounted value.

        Returns:
            `returns`, the undiscounted return of each episode, and numbers by name, such as `evaluation/return`.
        """
        ...

    def describe(self) -> dict[str, Any]:
        """What makes it the same evaluation again, as JSON can hold it: it is written into `config.json`."""
        ...


@dataclass(frozen=True)
class ExactGridworld:
    """The exact expected return of a policy: nothing is rolled out."""

    world: Gridworld

    def __call__(self, policy: Policy, *, seed: int, step: int, discount: float) -> dict[str, Any]:
        world = self.world
        policy.check_actions(DiscreteActions(world.transitions.shape[1]))
        chosen = np.eye(world.transitions.shape[1])[policy(world.observations)]
        episode = expected_return(world.transitions, world.rewards, chosen, world.start, world.horizon)
        forever = policy_values(world.transitions, world.rewards, chosen, discount)
        value = float(forever[world.start] @ chosen[world.start])
        return {"returns": [episode], RETURN: episode, DISCOUNTED_VALUE: value}

    def describe(self) -> dict[str, Any]:
        return {"kind": "exact gridworld", "world": self.world.word, "horizon": self.world.horizon}


@dataclass(frozen=True)
class Rollouts:
    """Episodes in a Gymnasium world, side by side. Their seeds follow from the member's seed, the step and the episode.

    Where the world says whether an episode succeeded, so does the outcome; where D4RL normalises its returns
    (`dr3.envs.find_task`), the score from 0 to 100 stands beside them.
    """

    env: str
    episodes: int = 10

    def __call__(self, policy: Policy, *, seed: int, step: int, discount: float) -> dict[str, Any]:
        policy.check_actions(actions_of(self.env))
        policy.check_parts(parts_of_world(self.env))
        streams = (np.random.SeedSequence((seed, step, episode)) for episode in range(self.episodes))
        seeds = [int(stream.generate_state(1)[0]) for stream in streams]
        episodes = play_side_by_side(self.env, policy, seeds, discount)
        returns = [episode.total for episode in episodes]
        discounted, lengths = zip(*((episode.discounted, episode.length) for episode in episodes), strict=True)
        outcome = outcome_of(returns, discounted, lengths)
        successes = [episode.success for episode in episodes if episode.success is not None]
        if successes:
            outcome[SUCCESS] = float(np.mean(successes))
        if (task := find_task(self.env)) is not None:
            outcome[NORMALISED_SCORE] = float(task.normalised(returns).mean())
        return outcome

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
        policy.check_observations(self.world.observation_shape)
        policy.check_actions(DiscreteActions(self.world.actions))
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
        return outcome_of(*outcome)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "compiled rollouts",
            "world": self.world.name,
            "episodes": self.episodes,
            "epsilon": self.epsilon,
            "limit": self.limit,
        }


def evaluator_for(env: str | Gridworld | MinAtar | Atari | Evaluator, *, episodes: int = 10) -> Evaluator:
    """The way to try a policy: exactly in a gridworld, by episodes in MinAtar, Atari and what `make_world` knows.

    Args:
        env: A world's name or object, or an evaluator.
        episodes: Episodes of each try, where it is by episodes.
    """
    episodes = whole_number("episodes", episodes, 1)
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
        if is_gridworld(env):
            return ExactGridworld(spelled_gridworld(env))
        make_world(env).close()  # so that a name that means nothing is refused before anything is trained
        return Rollouts(env, episodes)
    if not isinstance(env, Evaluator):
        raise UserError(
            f"env must be a world's name (CartPole-v1), one of dr3.envs or an Evaluator, not a {type(env).__name__}."
        )
    return env
