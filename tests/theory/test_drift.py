"""R_TD, its two gradients, the projector, and Theorem 3.1 against simulated chains."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.errors import UserError
from dr3.theory import (
    delta_in_samples,
    dense_covariance,
    gradient_terms,
    gradient_terms_in_samples,
    grams_of,
    identity_covariance,
    inverse_of_K,
    jacobians,
    label_noise,
    null_space_bases,
    null_space_cosines,
    oblique_projector,
    parameter_covariance,
    predicted_drift,
    project,
    pseudo_hessian,
    regularizer,
    sample_covariance,
    td_problem,
)
from dr3.theory.checks import theorem
from dr3.theory.checks.theorem import agreement, drift_at, follows, walk
from dr3.theory.instances import random_instance, random_pair, stable
from dr3.theory.noisy_td import paired_draws

ETA = 0.02


@pytest.fixture(scope="module")
def instance():
    with jax.enable_x64(True):
        return next(stable(random_instance, 1, n=3, hidden=5))


def product_problem():
    """Q(x) = a b x at a = 2, b = 1, x = 1, x' = 0.5, γ = 0.8, settled."""
    problem, theta = td_problem(
        lambda p, x: p[0] * p[1] * x, np.array([2.0, 1.0]), np.array([1.0]), np.array([0.5]), [0.0], 0.8
    )
    return problem.settled_at(theta), theta


def test_regularizers_by_hand() -> None:
    """g = (1, 2), g' = g/2, |g|² = 5: printed 5 - 0.8·2.5 = 3, corrected 2.5 - 2 = 0.5 at Σ* = I."""
    problem, theta = product_problem()
    assert float(regularizer(problem, theta, identity_covariance, printed=True)) == pytest.approx(3.0)
    assert float(regularizer(problem, theta, identity_covariance)) == pytest.approx(0.5)
    # H g = (2, 1): the gradients are (2 - 0.4)(2, 1) as printed and (1 - 0.4)(2, 1) as derived
    np.testing.assert_allclose(jax.grad(regularizer, argnums=1)(problem, theta, identity_covariance), [1.2, 0.6])
    terms = gradient_terms(problem, theta, identity_covariance)
    np.testing.assert_allclose(terms.corrected, [1.2, 0.6])
    np.testing.assert_allclose(terms.printed, [3.2, 1.6])


def test_drift_by_hand() -> None:
    """One sample: Σ*(g - γg') = η g / (2 - ηK), so the drift is -η²/(2 - ηK) ΠHg whatever γ is: label noise cancels it.

    K = 0.6·5 = 3, Π = I - ggᵀ/5, Hg = (2, 1), ΠHg = (2, 1) - 4/5 (1, 2) = (1.2, -0.6): towards |a| = |b|.
    """
    problem, theta = product_problem()
    drift = predicted_drift(problem, theta, label_noise(1), eta=ETA)
    np.testing.assert_allclose(drift.corrected, -(ETA**2) / (2 - 3 * ETA) * np.array([1.2, -0.6]), rtol=1e-12)


@pytest.mark.parametrize("printed", [False, True])
def test_gradient_of_the_regularizer(instance, printed: bool) -> None:
    """Errata 1 and 2: differentiating each form, with Σ* and g' held, gives the terms that its name says."""
    problem, theta = instance.problem, instance.theta
    S = sample_covariance(instance.grams, label_noise(3), ETA)
    covariance = dense_covariance(parameter_covariance(instance.J, S))
    by_autodiff = jax.grad(lambda at: regularizer(problem, at, covariance, printed=printed))(theta)
    for terms in (
        gradient_terms(problem, theta, covariance),
        gradient_terms_in_samples(problem, theta, instance.grams, S),
    ):
        np.testing.assert_allclose(terms.printed if printed else terms.corrected, by_autodiff, atol=1e-14)


def test_delta_in_samples_is_the_paper_s_trace(instance) -> None:
    S = sample_covariance(instance.grams, label_noise(3), ETA)
    sigma = parameter_covariance(instance.J, S)
    expected = sum(g @ sigma @ g_next for g, g_next in zip(instance.J, instance.J_next, strict=True))
    np.testing.assert_allclose(delta_in_samples(instance.grams, S), expected, rtol=1e-12)


def test_projector_is_onto_null_g_along_range_g(instance) -> None:
    G = pseudo_hessian(instance.problem, instance.theta)
    P = oblique_projector(instance.J, instance.J_next, instance.problem.discounts)
    np.testing.assert_allclose(P @ P, P, atol=1e-9)
    np.testing.assert_allclose(G @ P, 0, atol=1e-9)
    np.testing.assert_allclose(P @ G, 0, atol=1e-9)
    step = jnp.eye(len(G)) - ETA * G
    np.testing.assert_allclose(jnp.linalg.matrix_power(step, 10_000), P, atol=1e-6)
    v = jax.random.normal(jax.random.key(0), instance.theta.shape)
    np.testing.assert_allclose(
        project(instance.problem, instance.theta, inverse_of_K(instance.grams), v), P @ v, atol=1e-10
    )


def test_projector_survives_repeated_samples() -> None:
    rows = jax.random.normal(jax.random.key(0), (2, 6))
    J, J_next = rows[jnp.array([0, 1, 1])], 0.2 * rows[jnp.array([1, 0, 0])]
    P = oblique_projector(J, J_next, jnp.full(3, 0.9))
    np.testing.assert_allclose(P @ P, P, atol=1e-10)
    np.testing.assert_allclose(P @ J.T, 0, atol=1e-10)


def test_no_projector_where_range_and_null_space_meet() -> None:
    # g - γg' = (0, 1) is orthogonal to g = (1, 0): K = 0 although G is not
    with pytest.raises(UserError, match="there is no projector"):
        oblique_projector(jnp.array([[1.0, 0.0]]), jnp.array([[1.0, -1.0]]), jnp.ones(1))


def test_null_spaces_coincide_in_sample_only() -> None:
    """Errata 3."""
    inside, outside = next(stable(random_pair, 1, slowest=0.1))
    for instance, coincide in ((inside, True), (outside, False)):
        sides = (instance.J, instance.J_next, instance.problem.discounts)
        assert (float(null_space_cosines(*sides).min()) > 1 - 1e-9) is coincide
        G = pseudo_hessian(instance.problem, instance.theta)
        null, left = null_space_bases(*sides)
        np.testing.assert_allclose(G @ null, 0, atol=1e-9)
        np.testing.assert_allclose(G.T @ left, 0, atol=1e-9)


def test_small_step_identity() -> None:
    """As η -> 0, KS + SKᵀ = ηI: with a symmetric K (J' = cJ) label noise drifts as supervised learning does."""
    instance = random_instance(3, n=3, hidden=5)
    J = instance.J
    S = sample_covariance(grams_of(J, 0.5 * J, 0.9), label_noise(3), 1e-6)
    K = grams_of(J, 0.5 * J, 0.9).K
    np.testing.assert_allclose(S @ K.T, 0.5e-6 * np.eye(3), rtol=1e-3, atol=1e-9)


def test_theorem_31_on_one_instance() -> None:
    """500 chains; the full check with six instances is `dr3 theory check`."""
    instance = next(stable(random_instance, 1))
    measured, predicted = walk(instance, 500), drift_at(instance)
    coefficient, cosine = agreement(measured.per_step, predicted.corrected)
    assert coefficient == pytest.approx(1, abs=0.1)
    assert cosine > 0.99
    assert not follows(*agreement(measured.per_step, predicted.printed))


def test_chains_do_not_start_from_the_numbers_that_their_network_was_drawn_from(monkeypatch) -> None:
    """In float64 normal(key, (12,)) are the first 12 of normal(key, (250, 2)): one key, and θ itself would be noise."""
    seen = []
    monkeypatch.setattr(theorem, "paired_draws", lambda key, *sizes: seen.append(paired_draws(key, *sizes)) or seen[0])
    instance = random_instance(0)
    walk(instance, 20)
    assert not np.isin(np.asarray(seen[0]), [*instance.theta, *instance.problem.inputs.ravel()]).any()


def test_nothing_is_d_by_d() -> None:
    """A network with 200,000 parameters: one d x d matrix would be 320 GB."""

    def q(params, x):
        return jnp.tanh(x @ params[0]) @ params[1]

    random = np.random.default_rng(0)
    params = (random.standard_normal((3, 50_000)), random.standard_normal(50_000) / 200)
    x, x_next = random.standard_normal((2, 2, 3))
    problem, theta = td_problem(q, params, x, x_next, [0.0, 0.0], 0.5)
    drift = predicted_drift(problem.settled_at(theta), theta, label_noise(2), eta=1e-6)
    J, J_next = jacobians(problem, theta)
    seen = (J - 0.5 * J_next) @ drift.corrected
    assert float(jnp.abs(seen).max()) < 1e-9 * float(jnp.linalg.norm(drift.corrected) * jnp.linalg.norm(J))
