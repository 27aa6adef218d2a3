"""What a loss sees of the table: columns on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float32, Shaped

from dr3.data.frames import Frames, compact
from dr3.data.transitions import Transitions

jax.tree_util.register_dataclass(Frames, data_fields=["stored", "newest"], meta_fields=["bits", "stack"])


class Batch(NamedTuple):
    """Rows of `Transitions` as device arrays. The whole table is one too, and `take` draws minibatches from it.

    In a whole table both columns of observations may be `Frames`, which share one store; a loss gets plain arrays, from
    `take` or from `all_rows`.
    """

    observations: Shaped[Array, " n *shape"]
    actions: Shaped[Array, " n *action"]  # int32 (n,), or float32 (n, size)
    rewards: Float32[Array, " n"]
    next_observations: Shaped[Array, " n *shape"]
    terminals: Float32[Array, " n"]  # 1 where the environment ended
    next_actions: Shaped[Array, " n *action"]
    returns: Float32[Array, " n"]
    next_behavior: Float32[Array, "n A"] | None  # probabilities of the logging policy at s'
    masks: Bool[Array, "n A"] | None = None  # which actions are allowed at s; None: all
    next_masks: Bool[Array, "n A"] | None = None  # the same at s'
    propensities: Float32[Array, " n"] | None = None  # of the logged action at s
    value_bounds: Float32[Array, "n 2"] | None = None  # the least and the most that Q can be

    @classmethod
    def of(cls, data: Transitions) -> Batch:
        """The whole table, on the device.

        Args:
            data: The table; N rows.
        """

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
            masks=None if data.masks is None else jnp.asarray(data.masks),
            next_masks=None if data.next_masks is None else jnp.asarray(data.next_masks),
            propensities=None if data.propensities is None else jnp.asarray(data.propensities, jnp.float32),
            value_bounds=None if data.value_bounds is None else jnp.asarray(data.value_bounds, jnp.float32),
        )

    def take(self, rows: Array) -> Batch:
        """A minibatch of some rows.

        Args:
            rows: Their numbers, (n,).
        """
        return jax.tree.map(lambda column: column[rows], self, is_leaf=_is_frames)

    def all_rows(self) -> Batch:
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
