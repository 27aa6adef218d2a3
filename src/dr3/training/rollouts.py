"""Episodes in a compiled world, all of them in one program."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dr3.envs import CompiledWorld
from dr3.methods import Method


class EvaluationResult(NamedTuple):
    """What the episodes came to."""

    returns: Array  # (episodes,) plain sums of rewards
    discounted: Array  # (episodes,)
    lengths: Array  # (episodes,) int32, in steps of the agent


@partial(jax.jit, static_argnames=("world", "episodes", "limit"))
def play(
    method: Method,
    critic: Any,
    key: Array,
    epsilon: float,
    discount: float,
    *,
    world: CompiledWorld,
    episodes: int,
    limit: int,
) -> EvaluationResult:
    """Act by the critic, at random with probability `epsilon`, until every episode is over or `limit` steps are made.

    Weights and numbers are arguments, so members and checkpoints of one structure share the program. An episode that is
    over stands still while the others go on: its world is no longer stepped.
    """

    def step(
        carry: tuple[Array, Any, Array, Array, EvaluationResult],
    ) -> tuple[Array, Any, Array, Array, EvaluationResult]:
        time, state, observation, over, so_far = carry
        of_choice, of_action, of_world = jax.random.split(jax.random.fold_in(key, time + 1), 3)
        explore = jax.random.uniform(of_choice, (episodes,)) < epsilon
        actions = jnp.where(
            explore, jax.random.randint(of_action, (episodes,), 0, world.actions), method.act(critic, observation)
        )
        after = jax.vmap(world.step)(state, actions, jax.random.split(of_world, episodes))
        reward = jnp.where(over, 0.0, after.reward)
        outcome = EvaluationResult(
            so_far.returns + reward,
            so_far.discounted + discount**time * reward,
            so_far.lengths + ~over,
        )
        state = keep_where(over, state, after.state)
        return time + 1, state, keep_where(over, observation, after.observation), over | after.terminal, outcome

    state, observation = jax.vmap(world.reset)(jax.random.split(jax.random.fold_in(key, 0), episodes))
    nothing = EvaluationResult(jnp.zeros(episodes), jnp.zeros(episodes), jnp.zeros(episodes, jnp.int32))
    start = (jnp.int32(0), state, observation, jnp.zeros(episodes, bool), nothing)
    return lax.while_loop(lambda carry: (carry[0] < limit) & ~carry[3].all(), step, start)[-1]


def keep_where(flags: Array, kept: Any, changed: Any) -> Any:
    """Leaf by leaf, the rows of `kept` where the flag is set and those of `changed` elsewhere."""

    def choose(old: Array, new: Array) -> Array:
        return jnp.where(flags.reshape(-1, *[1] * (new.ndim - 1)), old, new)

    return jax.tree.map(choose, kept, changed)
