"""The implicit regularizer R_TD of Theorem 3.1 (Eq. 4), as printed and as its own derivation requires.

    printed:    R = Σ_i g_iᵀ Σ* g_i  -  γ Σ_i [[g'_i]]ᵀ Σ* g_i
    corrected:  R = ½ Σ_i g_iᵀ Σ* g_i  -  γ Σ_i [[g'_i]]ᵀ Σ* g_i

Appendix C asks for ∇R = Σ_i ∇²Q_i Σ* (g_i - γg'_i). The printed form's gradient has twice its first term (errata 1);
noisy TD follows the corrected one. Σ* is a constant in both (errata 2), and the prefix η is dropped (errata 5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dr3.instruments import Grams
from dr3.theory.derivatives import jacobians
from dr3.theory.problem import TDProblem

Covariance = Callable[[Array], Array]  # rows V (n, d) -> VΣ* (n, d)


def identity_covariance(rows: Array) -> Array:
    """Σ* = I, the paper's reading aid and what practical DR3 uses.

    Args:
        rows: (n, d).
    """
    return rows


def dense_covariance(sigma: Array) -> Covariance:
    """Σ* given as (d, d).

    Args:
        sigma: Σ*, (d, d).
    """
    return lambda rows: rows @ sigma


def regularizer(problem: TDProblem, theta: Array, covariance: Covariance, *, printed: bool = False) -> Array:
    """R_TD(θ), a scalar whose gradient by automatic differentiation stops where the paper's [[·]] and Σ* stop it.

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
        covariance: Σ*, as a function of rows: V (n, d) -> VΣ* (n, d).
        printed: As the paper prints it.
    """
    J, J_next = jacobians(problem, theta)
    quadratic = jnp.sum(J * covariance(J))
    cross = jnp.sum(J * lax.stop_gradient(covariance(problem.discounts[:, None] * J_next)))
    return (quadratic if printed else quadratic / 2) - cross


class GradientTerms(NamedTuple):
    """The two sums ∇R_TD is made of, each (d,)."""

    supervised: Array  # Σ_i ∇²Q_i Σ* g_i: noisy gradient descent has this too
    bootstrap: Array  # γ Σ_i ∇²Q_i Σ* g'_i: what TD adds

    @property
    def corrected(self) -> Array:
        """∇R_TD as the derivation has it, and as noisy TD moves."""
        return self.supervised - self.bootstrap

    @property
    def printed(self) -> Array:
        """The gradient of R_TD as printed in Eq. 4."""
        return 2 * self.supervised - self.bootstrap


def gradient_terms(problem: TDProblem, theta: Array, covariance: Covariance) -> GradientTerms:
    """From any Σ* that can be applied to rows; J (n, d) is formed.

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
        covariance: Σ*, as a function of rows: V (n, d) -> VΣ* (n, d).
    """
    J, J_next = jacobians(problem, theta)

    def hessian_products(directions: Array) -> Array:
        return sum_of_hessian_products(problem, theta, directions)

    return GradientTerms(
        hessian_products(covariance(J)), hessian_products(covariance(problem.discounts[:, None] * J_next))
    )


@jax.jit
def gradient_terms_in_samples(problem: TDProblem, theta: Array, grams: Grams, S: Array) -> GradientTerms:
    """From Σ* = JᵀSJ, for networks of any size: a handful of vectors of length d exist at a time.

    Σ* g_i = Jᵀ (S JJᵀ)_i and Σ* γg'_i = Jᵀ (S γJJ'ᵀ)_i.

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
        grams: The problem's Gram matrices, (n, n).
        S: (n, n), with Σ* = JᵀSJ.
    """
    _, pull_back = jax.vjp(problem.values, theta)

    def sum_over_rows(weights: Array) -> Array:
        def add(total: Array, sample) -> tuple[Array, None]:
            row, weight = sample
            return total + hessian_product(problem, theta, row, pull_back(weight)[0]), None

        return lax.scan(add, jnp.zeros_like(theta), (problem.inputs, weights.T))[0]

    return GradientTerms(sum_over_rows(S @ grams.same), sum_over_rows(S @ (grams.discounts[:, None] * grams.cross).T))


def hessian_product(problem: TDProblem, theta: Array, row, direction: Array) -> Array:
    """∇²Q(row) times a direction: (d,)."""
    return jax.jvp(lambda at: jax.grad(problem.row_value)(at, row), (theta,), (direction,))[1]


def sum_of_hessian_products(problem: TDProblem, theta: Array, directions: Array) -> Array:
    """Σ_i ∇²Q_i u_i for rows u_i (n, d): (d,)."""
    products = jax.vmap(lambda row, u: hessian_product(problem, theta, row, u))(problem.inputs, directions)
    return products.sum(axis=0)


def delta_in_samples(grams: Grams, S: Array) -> Array:
    """Δ_M = Σ_i g_iᵀ Σ* g'_i = trace((J'Jᵀ) S (JJᵀ)): what the label-noise form of DR3 penalises (section 4).

    Args:
        grams: The problem's Gram matrices, (n, n).
        S: (n, n), with Σ* = JᵀSJ.
    """
    return jnp.trace(grams.cross @ S @ grams.same)
