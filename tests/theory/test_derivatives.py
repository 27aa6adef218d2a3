"""J, g, G and ∇G[v, v]: by hand on two parameters, then Lemma C.1 against automatic differentiation."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.errors import UserError
from dr3.theory import (
    gram_matrices,
    jacobians,
    pseudo_gradient,
    pseudo_hessian,
    pseudo_hessian_closed_form,
    pseudo_hessian_derivative,
    pseudo_hessian_derivative_closed_form,
    pseudo_hessian_product,
    td_problem,
)
from dr3.theory.instances import random_instance


def product_network(params: dict, x: jax.Array) -> jax.Array:
    """Q(x) = a b x, the smallest network that is not linear in its parameters."""
    return params["a"] * params["b"] * x


def product_problem(reward: float = 1.0, bootstraps: float = 1.0):
    params = {"a": jnp.array(2.0), "b": jnp.array(3.0)}
    return td_problem(product_network, params, np.array([1.0]), np.array([0.5]), [reward], 0.8, bootstraps=[bootstraps])


def test_by_hand() -> None:
    # Q = 6, Q' = 3, e = 6 - (1 + 0.8·3) = 2.6; ∇Q = (b, a) = (3, 2), ∇Q' = half of it; c = 1 - 0.8/2 = 0.6
    problem, theta = product_problem()
    J, J_next = jacobians(problem, theta)
    np.testing.assert_allclose(J, [[3, 2]])
    np.testing.assert_allclose(J_next, [[1.5, 1]])
    np.testing.assert_allclose(problem.errors(theta), [2.6])
    np.testing.assert_allclose(pseudo_gradient(problem, theta), [7.8, 5.2])
    # G = e [[0, 1], [1, 0]] + c (3, 2)ᵀ(3, 2)
    np.testing.assert_allclose(pseudo_hessian(problem, theta), [[5.4, 6.2], [6.2, 2.4]])
    # ∇G[v, v] at v = (1, 0): 2 H v (c g·v) + (vᵀHv)(…) = 2 (0, 1)·1.8 + 0
    np.testing.assert_allclose(pseudo_hessian_derivative(problem, theta, jnp.array([1.0, 0.0])), [0, 3.6])


def test_a_terminal_does_not_bootstrap() -> None:
    problem, theta = product_problem(bootstraps=0.0)
    np.testing.assert_allclose(problem.errors(theta), [5.0])
    np.testing.assert_allclose(gram_matrices(problem, theta).K, [[13.0]])


def test_settled_means_no_error() -> None:
    problem, theta = product_problem()
    np.testing.assert_allclose(problem.settled_at(theta).errors(theta), [0], atol=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_lemma_c1(seed: int) -> None:
    """Away from the fixed point, so that the terms in e_i and ∇³Q_i count."""
    instance = random_instance(seed, n=3, inputs=2, hidden=4)
    problem = dataclasses.replace(instance.problem, rewards=instance.problem.rewards + 1.0)
    v = jax.random.normal(jax.random.key(seed), instance.theta.shape)
    G = pseudo_hessian(problem, instance.theta)
    np.testing.assert_allclose(pseudo_hessian_closed_form(problem, instance.theta), G, atol=1e-12)
    np.testing.assert_allclose(pseudo_hessian_product(problem, instance.theta, v), G @ v, atol=1e-12)
    np.testing.assert_allclose(
        pseudo_hessian_derivative_closed_form(problem, instance.theta, v),
        pseudo_hessian_derivative(problem, instance.theta, v),
        atol=1e-12,
    )


def test_grams_without_a_jacobian() -> None:
    instance = random_instance(0, n=5, inputs=2, hidden=4)
    free = gram_matrices(instance.problem, instance.theta, block=2)
    np.testing.assert_allclose(free.same, instance.J @ instance.J.T, atol=1e-13)
    np.testing.assert_allclose(free.cross, instance.J_next @ instance.J.T, atol=1e-13)


def test_inputs_may_be_observations_with_action_indices() -> None:
    def q(params: jax.Array, inputs: tuple) -> jax.Array:
        observations, actions = inputs
        return jnp.take_along_axis(observations @ params, actions[:, None], axis=1)[:, 0]

    observations, actions = np.eye(2, dtype=np.float32), np.array([2, 0])
    problem, theta = td_problem(q, np.ones((2, 3)), (observations, actions), (observations, actions), [0, 0], 0.9)
    J, _ = jacobians(problem, theta)
    np.testing.assert_array_equal(J, [[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]])


def test_refuses_single_precision() -> None:
    with jax.enable_x64(False), pytest.raises(UserError, match="double precision"):
        product_problem()


def test_refuses_a_network_with_the_wrong_shape() -> None:
    with pytest.raises(UserError, match="one value per row"):
        td_problem(lambda p, x: x * p, np.array(1.0), np.ones((2, 3)), np.ones((2, 3)), [0, 0], 0.9)
