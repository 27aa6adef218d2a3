"""What a loss sees of the table: columns on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dr3.data.frames import Frames, compact
from dr3.data.transitions import Transitions

jax.tree_util.register_dataclass(Frames, data_fields=["stored", "newest"], meta_fields=["bits", "stack"])


class Batch(NamedTuple):
    """Rows of `Transitions` as device arrays. The whole table is one too, and `take` draws minibatches from it.

    In a whole table both columns of observations may be `Frames`, which share one store; a loss gets plain arrays, from
    `take` or from `whole`.
    """

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

        observations, next_observations = _on_device(data)
        return cls(
            observations=observations,
            actions=integers_or_floats(data.actions),
            rewards=jnp.asarray(data.rewards, jnp.float32),
            next_observations=next_observations,
            terminals=jnp.asarray(data.terminals, jnp.float32),
            next_actions=integers_or_floats(data.next_actions),
            returns=jnp.asarray(data.returns, jnp.float32),
            next_behavior=None if data.next_behavior is None else jnp.asarray(data.next_behavior, jnp.float32),
        )

    def take(self, rows: Array) -> Batch:
        return jax.tree.map(lambda column: column[rows], self, is_leaf=_is_frames)

    def whole(self) -> Batch:
        """Every row, as plain arrays."""
        return jax.tree.map(lambda column: column[:] if _is_frames(column) else column, self, is_leaf=_is_frames)


def _is_frames(column: Any) -> bool:
    return isinstance(column, Frames)


def _on_device(data: Transitions) -> tuple[Any, Any]:
    columns = (data.observations, data.next_observations)
    if isinstance(columns[0], Frames) and isinstance(columns[1], Frames):
        columns = compact(columns[0], columns[1])
        stored = jnp.asarray(columns[0].stored)
        now, following = (Frames(stored, jnp.asarray(c.newest, jnp.int32), c.bits, c.stack) for c in columns)
        return now, following
    return jnp.asarray(columns[0]), jnp.asarray(columns[1])
