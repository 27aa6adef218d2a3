"""What the theory predicts, put together: the mean motion of noisy TD near a fixed point, and what it does to g·g'."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dr3.instruments import Grams
from dr3.theory.covariance import sample_covariance
from dr3.theory.grams import gram_matrices
from dr3.theory.null_spaces import inverse_of_K, project
from dr3.theory.problem import TDProblem
from dr3.theory.regularizer import gradient_terms_in_samples


class Drift(NamedTuple):
    """Mean displacement per step, in the directions where I - ηG does not contract; each (d,)."""

    corrected: Array  # -η Π ∇R_TD with the ½ of errata 1: what noisy TD does
    printed: Array  # the same from Eq. 4 as printed: what it does not do
    supervised: Array  # the part of `corrected` from Σ_i ∇²Q_i Σ* g_i
    bootstrap: Array  # the part from -γ Σ_i ∇²Q_i Σ* g'_i

    def changes(self, gradient: Array) -> dict[str, float]:
        """First-order change per step of a function with this gradient, under each."""
        return {name: float(gradient @ value) for name, value in self._asdict().items()}


def predicted_drift(
    problem: TDProblem, theta: Array, noise: Array, *, eta: float, grams: Grams | None = None, S: Array | None = None
) -> Drift:
    """-η Π Σ_i ∇²Q_i Σ* (∇Q_i - γ∇Q'_i) for M = JᵀCJ with C = `noise` (n, n), in n x n and vectors of length d.

    The drift is of order η² (Σ* carries one η), and η Π is exactly Theorem 3.1's direction (errata 3, 4).
    S: Σ* = JᵀSJ where it is not to be solved for, as with `noise_with_identity_covariance`.

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
        noise: C (n, n), with M = JᵀCJ.
        eta: η, the step size.
        grams: The problem's Gram matrices, (n, n).
        S: (n, n), with Σ* = JᵀSJ.
    """
    grams = gram_matrices(problem, theta) if grams is None else grams
    S = sample_covariance(grams, noise, eta) if S is None else S
    K_inverse = inverse_of_K(grams)
    terms = gradient_terms_in_samples(problem, theta, grams, S)
    supervised = -eta * project(problem, theta, K_inverse, terms.supervised)
    bootstrap = eta * project(problem, theta, K_inverse, terms.bootstrap)
    return Drift(supervised + bootstrap, 2 * supervised + bootstrap, supervised, bootstrap)


@jax.jit
def mean_dot_product(problem: TDProblem, theta: Array) -> Array:
    """(1/n) Σ_i ∇Q_i · ∇Q'_i, without masking: scalar.

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
    """
    return _mean_product(problem, theta, problem.next_inputs)


@jax.jit
def mean_squared_norm(problem: TDProblem, theta: Array) -> Array:
    """(1/n) Σ_i ||∇Q_i||²: scalar.

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
    """
    return _mean_product(problem, theta, problem.inputs)


def _mean_product(problem: TDProblem, theta: Array, others) -> Array:
    gradient = jax.grad(problem.row_value)

    def product(pair) -> Array:
        row, other = pair
        return gradient(theta, row) @ gradient(theta, other)

    return jnp.mean(jax.lax.map(product, (problem.inputs, others), batch_size=min(8, problem.size)))
