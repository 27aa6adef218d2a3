"""A mean over rows whose gradient is taken a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

# (weights, rows, given) -> values; rows and given have the rows' axis first in every leaf.
OfRows = Callable[[Any, Any, Any], Array]


def mean_over_rows(function: OfRows, weights: Any, rows: Any, given: Any, blocks: int) -> Array:
    """The mean of what `function` says of all rows, differentiable in weights and rows; `given` is constant.

    One block after the other goes forwards and backwards, so that what the backward pass needs is still in the
    processor's cache. 30 actions at 256 states, a critic of 3 x 256, one core: 86 ms in 4 blocks, 114 ms at once.
    """
    if blocks == 1:
        return jnp.mean(function(weights, rows, lax.stop_gradient(given)))
    return _in_blocks(function, blocks, weights, rows, given)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _in_blocks(function: OfRows, blocks: int, weights: Any, rows: Any, given: Any) -> Array:
    return jnp.mean(function(weights, rows, given))


def _forward(function: OfRows, blocks: int, weights: Any, rows: Any, given: Any) -> tuple[Array, Any]:
    """The mean, and already its gradient: a mean's does not depend on what is made of it, but for a factor."""

    def add(total: Any, block: Any) -> tuple[Any, Any]:
        value_and_slopes = jax.value_and_grad(lambda w, r: jnp.mean(function(w, r, block[1])) / blocks, argnums=(0, 1))
        value, (of_weights, of_rows) = value_and_slopes(weights, block[0])
        return jax.tree.map(jnp.add, total, (value, of_weights)), of_rows

    cut = jax.tree.map(lambda x: x.reshape(blocks, -1, *x.shape[1:]), (rows, given))
    nothing = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, weights))
    (value, of_weights), of_rows = lax.scan(add, nothing, cut)
    return value, (of_weights, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), of_rows))


def _backward(function: OfRows, blocks: int, slopes: Any, factor: Array) -> tuple[Any, Any, None]:
    of_weights, of_rows = jax.tree.map(lambda x: factor * x, slopes)
    return of_weights, of_rows, None


_in_blocks.defvjp(_forward, _backward)
