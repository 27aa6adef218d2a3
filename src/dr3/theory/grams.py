"""The Gram matrices of a problem: from explicit gradients, or from a network of any size."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import Array

from dr3.instruments import Grams
from dr3.instruments.gradients import gradient_products
from dr3.theory.problem import TDProblem


def grams_of(rows: Array, next_rows: Array, discounts: Array | float) -> Grams:
    """From explicit gradients or features (the gradients of a last linear layer), both (n, d).

    Args:
        rows: ∇Q(s, a) by rows, (n, d).
        next_rows: ∇Q(s', a') by rows, (n, d).
        discounts: γ(1 - d) of each row, (n,).
    """
    return Grams(
        rows @ rows.T, next_rows @ rows.T, jnp.broadcast_to(jnp.asarray(discounts, rows.dtype), rows.shape[:1])
    )


@functools.partial(jax.jit, static_argnames="block")
def gram_matrices(problem: TDProblem, theta: Array, *, block: int = 8) -> Grams:
    """Without J: `block` gradients of length d exist at a time.

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
        block: How many gradients exist at a time.
    """
    block = min(block, problem.size)
    return Grams(
        *gradient_products(problem.q, theta, problem.inputs, problem.next_inputs, block=block), problem.discounts
    )
