"""Σ*_M, the fixed point of Σ = (I - ηG) Σ (I - ηG)ᵀ + η²M (Theorem 3.1, Lemma C.2), four ways.

The d x d forms are there to be checked against; `sample_covariance` is the one to use.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import Array

from dr3.errors import UserError
from dr3.instruments import Grams
from dr3.lyapunov import lyapunov_fixed_point, lyapunov_steps, support_of


def covariance_dense(G: Array, M: Array, eta: float) -> Array:
    """Σ* (d, d) by SciPy, on an orthonormal basis of Range(G).

    On the whole of parameter space the equation is singular (G has a null space by overparameterisation), so it is
    solved where it has a solution: G maps Range(G) into itself and M lives there.

    Args:
        G: The pseudo-Hessian, (d, d).
        M: The covariance of the noise, (d, d).
        eta: η, the step size.
    """
    basis, singular_values, _ = np.linalg.svd(np.asarray(G))
    basis = basis[:, singular_values > singular_values[0] * 1e-10]
    noise = basis.T @ np.asarray(M) @ basis
    if np.linalg.norm(basis @ noise @ basis.T - M) > 1e-8 * np.linalg.norm(M):
        raise UserError("M must span the same subspace as G (Assumption 2), else Σ* does not exist.")
    step = np.eye(basis.shape[1]) - eta * basis.T @ np.asarray(G) @ basis
    if np.abs(np.linalg.eigvals(step)).max() >= 1:
        raise UserError(f"I - ηG does not contract on the range of G at η = {eta:g}, so Σ* does not exist.")
    return jnp.asarray(basis @ scipy.linalg.solve_discrete_lyapunov(step, eta**2 * noise) @ basis.T)


def covariance_steps(G: Array, M: Array, eta: float, steps: int) -> Array:
    """Σ_k (d, d) after k steps from Σ_0 = 0 (Lemma C.2's recursion; for any M, also one outside Range(G)).

    Args:
        G: The pseudo-Hessian, (d, d).
        M: The covariance of the noise, (d, d).
        eta: η, the step size.
        steps: k.
    """
    return lyapunov_steps(G, eta, steps, noise=M)


def covariance_doubling(G: Array, M: Array, eta: float) -> Array:
    """Σ* (d, d) by doubling the number of steps, on Range(G) (outside it (I - ηG)ᵏ tends to Π, not to 0).

    Args:
        G: The pseudo-Hessian, (d, d).
        M: The covariance of the noise, (d, d).
        eta: η, the step size.
    """
    solution = lyapunov_fixed_point(G, eta, noise=M, support=support_of(G @ G.T, tolerance=1e-12))
    if not bool(solution.contracts):
        raise UserError(f"I - ηG does not contract on the range of G at η = {eta:g}, so Σ* does not exist.")
    return solution.covariance


def sample_covariance(grams: Grams, C: Array, eta: float) -> Array:
    """S (n, n) with Σ* = JᵀSJ exactly, for M = JᵀCJ. Refused where I - ηK does not contract.

    Args:
        grams: The problem's Gram matrices, (n, n).
        C: (n, n), with M = JᵀCJ.
        eta: η, the step size.
    """
    solution = lyapunov_fixed_point(grams.K, eta, noise=C, support=support_of(grams.same))
    if not bool(solution.contracts):
        raise UserError(
            f"I - ηK does not contract at η = {eta:g}, so Σ* does not exist; stability() knows the largest step."
        )
    return solution.covariance


def sample_covariance_steps(grams: Grams, C: Array, eta: float, steps: int) -> Array:
    """S_k (n, n) with Σ_k = JᵀS_kJ, after k steps from 0.

    Args:
        grams: The problem's Gram matrices, (n, n).
        C: (n, n), with M = JᵀCJ.
        eta: η, the step size.
        steps: k.
    """
    return lyapunov_steps(grams.K, eta, steps, noise=C)


def parameter_covariance(J: Array, S: Array) -> Array:
    """Σ = JᵀSJ: (d, d).

    Args:
        J: ∇Q(s, a) by rows, (n, d).
        S: (n, n), with Σ* = JᵀSJ.
    """
    return J.T @ S @ J
