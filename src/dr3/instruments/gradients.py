"""Inner products of gradients over all parameters of a network. (Apart from the others: it needs JAX.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array


def gradient_products(
    q: Callable[[Any, Any], Array], parameters: Any, here: Any, there: Any, *, block: int | None = None
) -> tuple[Array, Array]:
    """JJᵀ and J'Jᵀ, each (n, n), of q: (parameters, inputs) -> (n,), at the inputs `here` and `there`.

    For a network of any size: one gradient of length d exists at a time, or `block`, and J (n, d) never does. Column j
    of JJᵀ is J of the whole batch times ∇Q_j, and of J'Jᵀ that of (s', a').
    """
    times_J, times_J_next = (_times_jacobian(lambda at, side=side: q(at, side), parameters) for side in (here, there))

    def column(row: Any) -> tuple[Array, Array]:
        gradient = jax.grad(lambda at: q(at, jax.tree.map(lambda leaf: leaf[None], row))[0])(parameters)
        return times_J(gradient), times_J_next(gradient)

    same, cross = jax.lax.map(column, here, batch_size=block)
    return same.T, cross.T


def _times_jacobian(function: Callable[[Any], Array], at: Any) -> Callable[[Any], Array]:
    """v -> J v by two passes backwards: uᵀJ is linear in u, and its own pullback is J.

    Not by `jax.jvp`: layers that are written for speed in single precision cannot be differentiated forwards.
    """
    values, back = jax.vjp(function, at)
    _, forth = jax.vjp(lambda u: back(u)[0], jnp.zeros_like(values))
    return lambda direction: forth(direction)[0]
