"""Computations behind docs/errata.md that no other test makes. The numbers are those of that page."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.instruments import cosine
from dr3.theory import (
    covariance_steps,
    grams_of,
    identity_covariance,
    jacobians,
    label_noise,
    parameter_noise,
    pseudo_gradient,
    pseudo_hessian,
    pseudo_hessian_derivative,
    regularizer,
    stability,
    td_problem,
)
from dr3.theory.instances import random_pair, stable

ETA = 0.02


@pytest.fixture(scope="module")
def pair():
    with jax.enable_x64(True):
        return next(stable(random_pair, 1, slowest=0.1))


def test_1_the_sarsa_bound_has_a_half(pair) -> None:
    """In sample at Σ* = I: R >= (½ - γ) Σ||g||² as corrected, and (1 - γ) Σ||g||² as printed."""
    inside, _ = pair
    squares = float((inside.J**2).sum())
    corrected = float(regularizer(inside.problem, inside.theta, identity_covariance))
    printed = float(regularizer(inside.problem, inside.theta, identity_covariance, printed=True))
    assert corrected >= (0.5 - 0.9) * squares
    assert printed >= (1 - 0.9) * squares


def test_1_the_half_bound_is_reached() -> None:
    """Q(x) = a b x looping on itself: g' = g, so R = (½ - γ)||g||², negative for γ > ½."""
    problem, theta = td_problem(
        lambda p, x: p[0] * p[1] * x, np.array([2.0, 1.0]), np.array([1.0]), np.array([1.0]), [0.0], 0.9
    )
    assert float(regularizer(problem, theta, identity_covariance)) == pytest.approx((0.5 - 0.9) * 5)


def test_3_out_of_sample_rows_leave_the_span(pair) -> None:
    """Columns of G always span the g_i; its rows span the g_i - γg'_i, which out of sample is another space."""
    for instance, same in zip(pair, (True, False), strict=True):
        J, J_next = jacobians(instance.problem, instance.theta)
        rank = int(jnp.linalg.matrix_rank(jnp.concatenate([J, J - 0.9 * J_next])))
        assert (rank == len(J)) is same


def test_7_the_taylor_term(pair) -> None:
    """ν ← (I - ηG)ν - (η/2)∇G[ν, ν] leaves a cubic remainder; the appendix's +(η/2) and its further η leave squares."""
    instance = pair[1]
    problem, theta = instance.problem, instance.theta
    G = pseudo_hessian(problem, theta)
    direction = jax.random.normal(jax.random.key(0), theta.shape)

    def remainders(factor: float) -> list[float]:
        sizes = []
        for scale in (1e-2, 1e-3):
            nu = scale * direction
            exact = nu - ETA * pseudo_gradient(problem, theta + nu)
            series = nu - ETA * G @ nu + factor * pseudo_hessian_derivative(problem, theta, nu)
            sizes.append(float(jnp.linalg.norm(exact - series)))
        return sizes

    coarse, fine = remainders(-ETA / 2)
    assert fine < coarse / 800
    for wrong in (ETA / 2, ETA**2 / 2, 0.5):
        coarse, fine = remainders(wrong)
        assert fine > coarse / 200


def test_8_the_covariance_recursion_needs_its_etas(pair) -> None:
    """Δ' = A Δ Aᵀ + η(A ζ εᵀ + ε ζᵀAᵀ) + η²(εεᵀ - M) for Δ = ζζᵀ - Σ*, exactly, whatever ζ and ε are."""
    instance = pair[0]
    G = pseudo_hessian(instance.problem, instance.theta)
    M = parameter_noise(instance.J, label_noise(3))
    sigma = covariance_steps(G, M, ETA, 200_000)
    A = jnp.eye(len(G)) - ETA * G
    zeta, epsilon = jax.random.normal(jax.random.key(1), (2, len(G)))
    following = A @ zeta + ETA * epsilon
    cross = ETA * (jnp.outer(A @ zeta, epsilon) + jnp.outer(epsilon, A @ zeta))
    recursion = A @ (jnp.outer(zeta, zeta) - sigma) @ A.T + cross + ETA**2 * (jnp.outer(epsilon, epsilon) - M)
    np.testing.assert_allclose(jnp.outer(following, following) - sigma, recursion, atol=1e-9)


def test_9_the_trace_is_a_sum_with_eta_squared(pair) -> None:
    instance = pair[0]
    G = pseudo_hessian(instance.problem, instance.theta)
    M = parameter_noise(instance.J, label_noise(3))
    A = jnp.eye(len(G)) - ETA * G
    powers = [jnp.linalg.matrix_power(A, j) for j in range(5)]
    total = sum(jnp.trace(power @ M @ power.T) for power in powers)
    np.testing.assert_allclose(jnp.trace(covariance_steps(G, M, ETA, 5)), ETA**2 * total, rtol=1e-12)


def test_11_the_modulus_of_a_power() -> None:
    """|1 - ηx|ᵏ = (1 + η²r² - 2ηr cos θ)^(k/2): the printed end of the chain is right, its first line is not."""
    r, angle, k = 3.0, 0.7, 5
    real, imaginary = r * np.cos(angle), r * np.sin(angle)
    K = jnp.array([[real, imaginary], [-imaginary, real]])  # its eigenvalues are r exp(±iθ), and it is normal
    shrinks_by = stability(grams_of(jnp.eye(2), jnp.eye(2) - K, 1.0)).spectral_radius(ETA) ** k
    assert shrinks_by == pytest.approx((1 + ETA**2 * r**2 - 2 * ETA * real) ** (k / 2))
    stepped = jnp.linalg.matrix_power(jnp.eye(2) - ETA * K, k) @ jnp.array([0.6, 0.8])
    assert shrinks_by == pytest.approx(float(jnp.linalg.norm(stepped)))
    assert abs((1 - ETA * real) + 1j * ETA * imaginary) != pytest.approx(shrinks_by)


def test_25_the_cosine_of_dead_features_is_zero() -> None:
    assert float(cosine(np.zeros((2, 3)), np.ones((2, 3)), np.ones(2))) == 0
