"""The n x n Lyapunov solver, in the precision that training uses and in double."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from dr3.lyapunov import lyapunov_fixed_point, lyapunov_steps, support_of


def random_K(n: int, seed: int = 0) -> np.ndarray:
    """Eigenvalues in the right half plane, not symmetric: a Gram matrix plus an antisymmetric part."""
    random = np.random.default_rng(seed)
    root, skew = random.standard_normal((2, n, n))
    return root @ root.T / n + 0.5 * np.eye(n) + 0.5 * (skew - skew.T)


def test_one_sample_by_hand() -> None:
    # S = (1 - ηK)² S + η² with K = 2, η = 0.25: S = 0.0625 / (1 - 0.25) = 1/12; the first steps are η² and η²(1 + 1/4)
    K = jnp.array([[2.0]])
    assert lyapunov_fixed_point(K, 0.25).covariance[0, 0] == pytest.approx(1 / 12)
    assert lyapunov_steps(K, 0.25, 1)[0, 0] == pytest.approx(0.0625)
    assert lyapunov_steps(K, 0.25, 2)[0, 0] == pytest.approx(0.078125)


def test_noise_scales_the_answer() -> None:
    # Diagonal K decouples: S_ii = η² c_i / (1 - (1 - ηk_i)²)
    solution = lyapunov_fixed_point(jnp.diag(jnp.array([1.0, 4.0])), 0.1, noise=jnp.diag(jnp.array([3.0, 0.0])))
    np.testing.assert_allclose(solution.covariance, np.diag([0.03 / 0.19, 0.0]), rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("precise", [False, True])
def test_agrees_with_scipy(precise: bool) -> None:
    K, eta = random_K(6), 0.05
    step = np.eye(6) - eta * K
    expected = scipy.linalg.solve_discrete_lyapunov(step, eta**2 * np.eye(6))
    with jax.enable_x64(precise):
        solution = lyapunov_fixed_point(jnp.asarray(K), eta)
        many = lyapunov_steps(jnp.asarray(K), eta, 3000)
        assert bool(solution.contracts)
        assert solution.covariance.dtype == (jnp.float64 if precise else jnp.float32)
        tolerance = 1e-12 if precise else 1e-4
        np.testing.assert_allclose(solution.covariance, expected, rtol=tolerance, atol=tolerance * expected.max())
        np.testing.assert_allclose(many, expected, rtol=tolerance, atol=tolerance * expected.max())


def test_many_steps_stay_symmetric() -> None:
    """Writing the step with (ηK S)ᵀ for S (ηK)ᵀ is equal on paper, and lets rounding in S's antisymmetric part grow."""
    with jax.enable_x64(True):
        S = lyapunov_steps(jnp.asarray(random_K(5, seed=3)), 0.05, 20_000)
        np.testing.assert_allclose(S, S.T, rtol=1e-12)
        np.testing.assert_allclose(
            S, lyapunov_fixed_point(jnp.asarray(random_K(5, seed=3)), 0.05).covariance, rtol=1e-10
        )


def test_small_steps_keep_their_digits_in_single_precision() -> None:
    """At ηK = 1e-7 the matrix I - ηK has one digit of K left in float32; the solver must not go through it."""
    K = np.diag([1e-3, 2e-3])
    solution = lyapunov_fixed_point(jnp.asarray(K, jnp.float32), 1e-4)
    assert bool(solution.contracts)
    np.testing.assert_allclose(np.diag(solution.covariance), 1e-4 / (2 * np.diag(K)), rtol=1e-3)


@pytest.mark.parametrize(
    ("K", "eta"),
    [
        ([[-1.0]], 0.1),  # repelling
        ([[1.0]], 2.5),  # the step is too large
        ([[0.1, 5.0], [-5.0, 0.1]], 0.1),  # Re λ > 0, but η > 2 Re λ / |λ|²
    ],
)
def test_says_when_it_does_not_contract(K: list, eta: float) -> None:
    solution = lyapunov_fixed_point(jnp.asarray(K), eta)
    assert not bool(solution.contracts)
    assert bool(jnp.isfinite(solution.covariance).all())


def test_transient_growth_is_no_divergence() -> None:
    """A far from normal matrix grows for a while before it contracts: ||A|| is 100, ρ(A) is 0.5."""
    assert bool(lyapunov_fixed_point(jnp.array([[0.5, -100.0], [0.0, 0.5]]), 1.0).contracts)


def test_repeated_samples_need_the_support() -> None:
    rows = np.random.default_rng(0).standard_normal((3, 7))
    J, J_next = rows[[0, 1, 1, 2]], 0.3 * rows[[1, 2, 2, 0]]
    K = jnp.asarray((J - 0.9 * J_next) @ J.T)
    assert not bool(lyapunov_fixed_point(K, 0.02).contracts)
    solution = lyapunov_fixed_point(K, 0.02, support=support_of(jnp.asarray(J @ J.T)))
    assert bool(solution.contracts)
    sigma = J.T @ np.asarray(solution.covariance, np.float64) @ J
    step = np.eye(7) - 0.02 * J.T @ (J - 0.9 * J_next)
    np.testing.assert_allclose(sigma, step @ sigma @ step.T + 0.02**2 * J.T @ J, rtol=1e-3, atol=1e-6)


def test_support_is_the_projector_onto_the_range() -> None:
    np.testing.assert_allclose(support_of(jnp.diag(jnp.array([0.0, 2.0, 5.0]))), np.diag([0.0, 1.0, 1.0]), atol=1e-6)


def test_compiles_batches_and_passes_no_gradient() -> None:
    def penalty(K: jax.Array) -> jax.Array:
        return lyapunov_fixed_point(K, 0.05).covariance.sum() + lyapunov_steps(K, 0.05, 20).sum() + (K**2).sum()

    K = jnp.asarray(random_K(3), jnp.float32)
    np.testing.assert_allclose(jax.jit(jax.grad(penalty))(K), 2 * K, rtol=1e-6)
    pair = jnp.stack([K, -K])
    np.testing.assert_array_equal(jax.vmap(lambda one: lyapunov_fixed_point(one, 0.05).contracts)(pair), [True, False])
