"""The n x n matrices that everything about G reduces to."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dr3.lyapunov import support_of
from dr3.theory.problem import TDProblem


class Grams(NamedTuple):
    """Inner products of gradients (or of features: the gradients of a last linear layer)."""

    same: Array  # (n, n) JJᵀ
    cross: Array  # (n, n) J'Jᵀ: row i is g'_i against every g_j
    discounts: Array  # (n,) γ(1 - d)

    @property
    def K(self) -> Array:
        """K = (J - γJ')Jᵀ: (n, n). Its nonzero eigenvalues are those of G at a fixed point."""
        return self.same - self.discounts[:, None] * self.cross

    @property
    def support(self) -> Array:
        """Orthogonal projector onto Range(J): (n, n)."""
        return support_of(self.same)

    @property
    def dot_products(self) -> Array:
        """g_i · g'_i, the quantity that co-adapts: (n,)."""
        return jnp.diagonal(self.cross)


def grams_of(rows: Array, next_rows: Array, discounts: Array | float) -> Grams:
    """From explicit gradients or features, both (n, d)."""
    return Grams(
        rows @ rows.T, next_rows @ rows.T, jnp.broadcast_to(jnp.asarray(discounts, rows.dtype), rows.shape[:1])
    )


@functools.partial(jax.jit, static_argnames="block")
def gram_matrices(problem: TDProblem, theta: Array, *, block: int = 8) -> Grams:
    """From a network of any size: `block` gradients of length d exist at a time, J (n, d) never does.

    Column j of JJᵀ is the Jacobian-vector product of the whole batch along ∇Q_j, and of J'Jᵀ that of (s', a').
    """

    def column(row) -> tuple[Array, Array]:
        gradient = jax.grad(problem.row_value)(theta, row)
        _, same = jax.jvp(problem.values, (theta,), (gradient,))
        _, cross = jax.jvp(problem.next_values, (theta,), (gradient,))
        return same, cross

    same, cross = jax.lax.map(column, problem.inputs, batch_size=min(block, problem.size))
    return Grams(same.T, cross.T, problem.discounts)
