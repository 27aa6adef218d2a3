"""What a loss sees of the table: columns on the device."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dr3.data.transitions import Transitions


class Batch(NamedTuple):
    """Rows of `Transitions` as device arrays. The whole table is one too, and `take` draws minibatches from it."""

    observations: Array  # (n, *shape)
    actions: Array  # (n,) int32, or (n, size) float32
    rewards: Array  # (n,) float32
    next_observations: Array  # (n, *shape)
    terminals: Array  # (n,) float32, 1 where the environment ended
    next_actions: Array  # like actions
    returns: Array  # (n,) float32
    next_behavior: Array | None  # (n, A) float32: probabilities of the logging policy at s'

    @classmethod
    def of(cls, data: Transitions) -> Batch:
        def integers_or_floats(column: jax.typing.ArrayLike) -> Array:
            values = jnp.asarray(column)
            return values.astype(jnp.int32 if jnp.issubdtype(values.dtype, jnp.integer) else jnp.float32)

        return cls(
            observations=jnp.asarray(data.observations),
            actions=integers_or_floats(data.actions),
            rewards=jnp.asarray(data.rewards, jnp.float32),
            next_observations=jnp.asarray(data.next_observations),
            terminals=jnp.asarray(data.terminals, jnp.float32),
            next_actions=integers_or_floats(data.next_actions),
            returns=jnp.asarray(data.returns, jnp.float32),
            next_behavior=None if data.next_behavior is None else jnp.asarray(data.next_behavior, jnp.float32),
        )

    def take(self, rows: Array) -> Batch:
        return jax.tree.map(lambda column: column[rows], self)
