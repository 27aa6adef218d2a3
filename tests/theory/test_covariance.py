"""Σ* four ways, and the noise models it is solved for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.errors import UserError
from dr3.theory import (
    covariance_dense,
    covariance_doubling,
    covariance_steps,
    given_noise,
    grams_of,
    isotropic_noise,
    label_noise,
    noise_factor,
    noise_with_identity_covariance,
    ornstein_uhlenbeck,
    parameter_covariance,
    parameter_noise,
    pseudo_gradient,
    pseudo_hessian,
    sample_covariance,
    sample_covariance_steps,
    sgd_noise,
    stability,
)
from dr3.theory.instances import random_instance, stable

ETA = 0.02


@pytest.fixture(scope="module")
def instance():
    with jax.enable_x64(True):
        return next(stable(random_instance, 1, n=3, hidden=5))


def test_linear_q_by_hand() -> None:
    """Q = w·x with x = (3, 4), x' = x / 2, γ = 0.8: G = 0.6 xxᵀ, K = 15, S = η/(K(2 - ηK)), Σ* = S xxᵀ."""
    J = jnp.array([[3.0, 4.0]])
    grams = grams_of(J, J / 2, 0.8)
    np.testing.assert_allclose(grams.K, [[15.0]])
    S = sample_covariance(grams, label_noise(1), ETA)
    np.testing.assert_allclose(S, [[0.02 / (15 * 1.7)]])
    G = 0.6 * J.T @ J
    np.testing.assert_allclose(covariance_dense(G, J.T @ J, ETA), S[0, 0] * J.T @ J, rtol=1e-12)


def test_four_ways_agree(instance) -> None:
    G = pseudo_hessian(instance.problem, instance.theta)
    C = label_noise(3, sigma=0.5)
    M = parameter_noise(instance.J, C)
    dense = covariance_dense(G, M, ETA)
    step = jnp.eye(len(G)) - ETA * G
    np.testing.assert_allclose(dense, step @ dense @ step.T + ETA**2 * M, rtol=1e-9, atol=1e-12)
    S = sample_covariance(instance.grams, C, ETA)
    for other in (
        covariance_doubling(G, M, ETA),
        covariance_steps(G, M, ETA, 20_000),
        parameter_covariance(instance.J, S),
    ):
        np.testing.assert_allclose(other, dense, rtol=1e-8, atol=1e-11)


def test_k_steps_agree_in_both_spaces(instance) -> None:
    G = pseudo_hessian(instance.problem, instance.theta)
    M = parameter_noise(instance.J, label_noise(3))
    S = sample_covariance_steps(instance.grams, label_noise(3), ETA, 20)
    np.testing.assert_allclose(parameter_covariance(instance.J, S), covariance_steps(G, M, ETA, 20), atol=1e-15)


def test_ornstein_uhlenbeck_has_this_covariance(instance) -> None:
    """Lemma C.2, within five standard errors of a sample covariance in every entry."""
    G = pseudo_hessian(instance.problem, instance.theta)
    factor = instance.J.T @ noise_factor(label_noise(3))
    chains, steps = 4000, 300
    zetas = ornstein_uhlenbeck(
        G, jnp.zeros((2 * chains, len(G))), factor, jax.random.key(0), eta=ETA, records=1, steps_per_record=steps
    )[0, :chains]
    sigma = covariance_steps(G, parameter_noise(instance.J, label_noise(3)), ETA, steps)
    spread = jnp.sqrt((jnp.outer(jnp.diag(sigma), jnp.diag(sigma)) + sigma**2) / chains)
    assert float(jnp.abs((zetas.T @ zetas / chains - sigma) / spread).max()) < 5


def test_isotropic_noise_is_the_projector_onto_the_span(instance) -> None:
    M = parameter_noise(instance.J, isotropic_noise(instance.grams, sigma=2.0))
    np.testing.assert_allclose(M @ M, 4 * M, atol=1e-9)
    np.testing.assert_allclose(instance.J @ M, 4 * instance.J, atol=1e-9)


def test_identity_covariance_is_what_it_says(instance) -> None:
    C, _ = noise_with_identity_covariance(instance.grams, ETA)
    S = sample_covariance(instance.grams, C, ETA)
    np.testing.assert_allclose(S, jnp.linalg.inv(instance.grams.same), rtol=1e-7)


def test_no_noise_may_give_the_identity() -> None:
    """Re λ(K) = 1 > 0, yet no covariance M has Σ* = I: the symmetric part of (J - γJ')Jᵀ is indefinite."""
    J = jnp.eye(2)
    grams = grams_of(J, jnp.array([[0.0, -8.0], [0.0, 0.0]]), 1.0)
    assert stability(grams).condition_one
    C, exists = noise_with_identity_covariance(grams, 1e-3)
    assert not exists
    with pytest.raises(UserError, match="negative eigenvalue"):
        noise_factor(C)


def test_sgd_noise_is_the_covariance_of_minibatches(instance) -> None:
    """Enumerate all 9 ordered minibatches of 2 from 3 rows, away from the fixed point."""
    theta = instance.theta + 0.1
    errors = instance.problem.errors(theta)
    J = jax.jacobian(instance.problem.values)(theta)
    rows = errors[:, None] * J
    estimates = jnp.stack([3 / 2 * (rows[i] + rows[j]) for i in range(3) for j in range(3)])
    np.testing.assert_allclose(estimates.mean(0), pseudo_gradient(instance.problem, theta), atol=1e-13)
    expected = jnp.cov(estimates.T, bias=True)
    np.testing.assert_allclose(parameter_noise(J, sgd_noise(errors, 2)), expected, atol=1e-12)


def test_sgd_noise_vanishes_at_a_fixed_point(instance) -> None:
    assert float(jnp.abs(sgd_noise(instance.problem.errors(instance.theta), 2)).max()) < 1e-25


def test_given_noise_is_recovered(instance) -> None:
    C = jnp.diag(jnp.array([1.0, 2.0, 0.5]))
    np.testing.assert_allclose(given_noise(instance.J, parameter_noise(instance.J, C)), C, atol=1e-9)


def test_noise_outside_the_span_is_refused(instance) -> None:
    d = instance.J.shape[1]
    with pytest.raises(UserError, match="outside the span"):
        given_noise(instance.J, jnp.eye(d))
    with pytest.raises(UserError, match="Assumption 2"):
        covariance_dense(pseudo_hessian(instance.problem, instance.theta), jnp.eye(d), ETA)


def test_a_step_that_is_too_large_is_refused(instance) -> None:
    eta = 1.01 * instance.stability.largest_step
    G = pseudo_hessian(instance.problem, instance.theta)
    M = parameter_noise(instance.J, label_noise(3))
    for solve in (
        lambda: sample_covariance(instance.grams, label_noise(3), eta),
        lambda: covariance_dense(G, M, eta),
        lambda: covariance_doubling(G, M, eta),
    ):
        with pytest.raises(UserError, match="does not contract"):
            solve()
