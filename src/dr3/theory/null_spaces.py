"""Where learning cannot contract: the null spaces of G and Gᵀ, and the projector that noisy TD drifts through.

At a fixed point G = Jᵀ(J - γJ'). Null(G) is what every g_i - γg'_i is blind to; Null(Gᵀ) is what every g_i is blind to.
They coincide only if each g'_i lies in the span of the g_j: in-sample SARSA, and not the paper's subject (errata 3).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dr3.errors import UserError
from dr3.instruments import Grams
from dr3.lyapunov import support_of
from dr3.theory.grams import grams_of
from dr3.theory.problem import TDProblem


def oblique_projector(J: Array, J_next: Array, discounts: Array) -> Array:
    """Π = I - Jᵀ K⁻¹ (J - γJ'), onto Null(G) along Range(G): (d, d). It is also the limit of (I - ηG)ᵏ.

    Args:
        J: ∇Q(s, a) by rows, (n, d).
        J_next: ∇Q(s', a') by rows, (n, d).
        discounts: γ(1 - d) of each row, (n,).
    """
    advantage = J - discounts[:, None] * J_next
    return jnp.eye(J.shape[1]) - J.T @ inverse_of_K(grams_of(J, J_next, discounts)) @ advantage


@jax.jit
def project(problem: TDProblem, theta: Array, K_inverse: Array, v: Array) -> Array:
    """Π v by one Jacobian-vector product each way, with K⁻¹ from `inverse_of_K`: (d,).

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
        K_inverse: (n, n), from `inverse_of_K`.
        v: A direction, (d,).
    """
    _, seen = jax.jvp(lambda at: problem.values(at) - problem.discounts * problem.next_values(at), (theta,), (v,))
    _, pull_back = jax.vjp(problem.values, theta)
    return v - pull_back(K_inverse @ seen)[0]


def inverse_of_K(grams: Grams) -> Array:
    """K⁻¹ (n, n), the group inverse where samples repeat; refused where Range(G) and Null(G) meet.

    Args:
        grams: The problem's Gram matrices, (n, n).
    """
    support = support_of(grams.same)
    restricted = support @ grams.K @ support
    kept, rank = round(float(jnp.trace(support))), int(jnp.linalg.matrix_rank(restricted, rtol=1e-12))
    if rank < kept:
        raise UserError(
            f"K has rank {rank} but the gradients span {kept} directions, so Range(G) and Null(G) meet and there is no "
            "projector onto one along the other; change the batch or γ."
        )
    return jnp.linalg.pinv(restricted, rtol=1e-12)


def null_space_bases(J: Array, J_next: Array, discounts: Array) -> tuple[Array, Array]:
    """Orthonormal bases (d, d - n) of Null(G) and of Null(Gᵀ), by columns.

    Args:
        J: ∇Q(s, a) by rows, (n, d).
        J_next: ∇Q(s', a') by rows, (n, d).
        discounts: γ(1 - d) of each row, (n,).
    """
    return _complement(J - discounts[:, None] * J_next), _complement(J)


def null_space_cosines(J: Array, J_next: Array, discounts: Array) -> Array:
    """Cosines of the principal angles between Null(G) and Null(Gᵀ), largest first; all 1 where they coincide.

    Args:
        J: ∇Q(s, a) by rows, (n, d).
        J_next: ∇Q(s', a') by rows, (n, d).
        discounts: γ(1 - d) of each row, (n,).
    """
    null, left_null = null_space_bases(J, J_next, discounts)
    return jnp.clip(jnp.linalg.svd(null.T @ left_null, compute_uv=False), 0, 1)


def _complement(rows: Array) -> Array:
    _, singular_values, right = jnp.linalg.svd(rows, full_matrices=True)
    rank = int((singular_values > singular_values[0] * 1e-10).sum())
    return right[rank:].T
