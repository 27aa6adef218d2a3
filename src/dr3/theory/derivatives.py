"""J, J', the pseudo-gradient g(θ), the pseudo-Hessian G(θ) and ∇G[v, v] (Eq. 3 and Lemma C.1).

Products with G and ∇G[v, v] are Jacobian-vector products: nothing d x d exists unless its function is called by name.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dr3.theory.problem import TDProblem


@jax.jit
def jacobians(problem: TDProblem, theta: Array) -> tuple[Array, Array]:
    """J and J', both (n, d): row i is ∇Q_i and ∇Q'_i.

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
    """
    rows = jax.vmap(jax.grad(problem.row_value), in_axes=(None, 0))
    return rows(theta, problem.inputs), rows(theta, problem.next_inputs)


@jax.jit
def pseudo_gradient(problem: TDProblem, theta: Array) -> Array:
    """g(θ) = Σ_i ∇Q_i e_i (Eq. 3): (d,).

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
    """
    _, pull_back = jax.vjp(problem.values, theta)
    return pull_back(problem.errors(theta))[0]


@jax.jit
def pseudo_hessian_product(problem: TDProblem, theta: Array, v: Array) -> Array:
    """G(θ) v without G: (d,).

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
        v: A direction, (d,).
    """
    return jax.jvp(lambda at: pseudo_gradient(problem, at), (theta,), (v,))[1]


@jax.jit
def pseudo_hessian(problem: TDProblem, theta: Array) -> Array:
    """G(θ) = ∇g(θ) by automatic differentiation: (d, d).

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
    """
    return jax.jacfwd(lambda at: pseudo_gradient(problem, at))(theta)


@jax.jit
def pseudo_hessian_closed_form(problem: TDProblem, theta: Array) -> Array:
    """G(θ) = Σ_i ∇²Q_i e_i + Σ_i ∇Q_i (∇Q_i - γ∇Q'_i)ᵀ (Lemma C.1, first line): (d, d).

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
    """
    J, J_next = jacobians(problem, theta)
    hessians = jax.hessian(problem.values)(theta)  # (n, d, d)
    return jnp.einsum("ijk,i->jk", hessians, problem.errors(theta)) + J.T @ advantage_rows(problem, J, J_next)


@jax.jit
def pseudo_hessian_derivative(problem: TDProblem, theta: Array, v: Array) -> Array:
    """∇G(θ)[v, v], the second directional derivative of g along v, by automatic differentiation: (d,).

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
        v: A direction, (d,).
    """
    return jax.jvp(lambda at: pseudo_hessian_product(problem, at, v), (theta,), (v,))[1]


@jax.jit
def pseudo_hessian_derivative_closed_form(problem: TDProblem, theta: Array, v: Array) -> Array:
    """∇G(θ)[v, v] by the second line of Lemma C.1, whose third term lacks its sum and its [v, v] (errata 14):

    2 Σ_i ∇²Q_i v vᵀ(∇Q_i - γ∇Q'_i)  +  Σ_i tr((∇²Q_i - γ∇²Q'_i) vvᵀ) ∇Q_i  +  Σ_i e_i ∇³Q_i[v, v].

    Args:
        problem: The TD problem: a network and a batch.
        theta: The parameters, flat, (d,).
        v: A direction, (d,).
    """

    def along(function, at: Array):
        return jax.jvp(function, (at,), (v,))[1]

    def weighted_gradient(weights: Array):
        return lambda at: jax.vjp(problem.values, at)[1](weights)[0]  # Σ_i w_i ∇Q_i

    slopes = along(problem.values, theta) - problem.discounts * along(problem.next_values, theta)
    curvature = along(lambda at: along(problem.values, at), theta)
    next_curvature = along(lambda at: along(problem.next_values, at), theta)
    first = 2 * along(weighted_gradient(slopes), theta)
    second = weighted_gradient(curvature - problem.discounts * next_curvature)(theta)
    third = along(lambda at: along(weighted_gradient(problem.errors(theta)), at), theta)
    return first + second + third


def advantage_rows(problem: TDProblem, J: Array, J_next: Array) -> Array:
    """J - γJ' with each row's own discount: (n, d)."""
    return J - problem.discounts[:, None] * J_next
