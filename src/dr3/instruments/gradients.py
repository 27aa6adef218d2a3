"""Inner products of gradients over all parameters of a network. (Apart from the others: it needs JAX.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import Array


def gradient_products(
    q: Callable[[Any, Any], Array], parameters: Any, here: Any, there: Any, *, block: int | None = None
) -> tuple[Array, Array]:
    """JJᵀ and J'Jᵀ, each (n, n), of q: (parameters, inputs) -> (n,), at the inputs `here` and `there`.

    For a network of any size: one gradient of length d exists at a time, or `block`, and J (n, d) never does. Column j
    of JJᵀ is the Jacobian-vector product of the whole batch along ∇Q_j, and of J'Jᵀ that of (s', a').
    """

    def column(row: Any) -> tuple[Array, Array]:
        gradient = jax.grad(lambda at: q(at, jax.tree.map(lambda leaf: leaf[None], row))[0])(parameters)
        _, same = jax.jvp(lambda at: q(at, here), (parameters,), (gradient,))
        _, cross = jax.jvp(lambda at: q(at, there), (parameters,), (gradient,))
        return same, cross

    same, cross = jax.lax.map(column, here, batch_size=block)
    return same.T, cross.T
