"""Condition (1), the step size it needs, and the alignment numbers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from dr3.theory import Grams, alignment, dense_spectrum, grams_of, pseudo_hessian, stability
from dr3.theory.instances import random_instance


def grams_with(K: list) -> Grams:
    """Orthonormal gradients whose next gradients make K what it is."""
    J = jnp.eye(len(K))
    return grams_of(J, J - jnp.asarray(K), 1.0)


def test_step_bound_by_hand() -> None:
    """λ = 1 ± 2i: |1 - ηλ| < 1 iff η < 2/5. The printed bound Re λ/|λ| = 0.447 admits 0.42 (errata 10)."""
    verdict = stability(grams_with([[1.0, 2.0], [-2.0, 1.0]]))
    assert verdict.condition_one
    assert verdict.largest_step == pytest.approx(0.4)
    assert verdict.contracts(0.39)
    assert verdict.spectral_radius(0.39) < 1
    assert not verdict.contracts(0.42)
    assert verdict.spectral_radius(0.42) > 1


@pytest.mark.parametrize("K", [[[-1.0]], [[0.0, 1.0], [-1.0, 0.0]]])
def test_condition_one_fails(K: list) -> None:
    verdict = stability(grams_with(K))
    assert not verdict.condition_one
    assert verdict.largest_step == 0
    assert not verdict.contracts(1e-6)


def test_the_small_spectrum_is_the_large_one() -> None:
    instance = random_instance(0, n=3, hidden=4)
    dense = dense_spectrum(pseudo_hessian(instance.problem, instance.theta))
    np.testing.assert_allclose(np.abs(dense[:3]), np.abs(instance.stability.eigenvalues), rtol=1e-9)
    np.testing.assert_allclose(np.abs(dense[3:]), 0, atol=1e-9)


def test_repeated_samples_add_only_zeros() -> None:
    instance = random_instance(0, n=2)
    twice = jnp.array([0, 1, 1])
    once = stability(grams_of(instance.J, instance.J_next, 0.9))
    again = stability(grams_of(instance.J[twice], instance.J_next[twice], 0.9))
    assert len(once.eigenvalues) == len(again.eigenvalues) == 2


def test_the_lemma_s_norm_bound_needs_its_constant() -> None:
    """Errata 10: max_k over |1 - ηλ|ᵏ |λ| η k is not 1/e but about 1/(e cos arg λ)."""
    eigenvalue, eta = 1 + 3j, 1e-3
    verdict = stability(grams_with([[1.0, 3.0], [-3.0, 1.0]]))
    np.testing.assert_allclose(np.abs(verdict.eigenvalues), abs(eigenvalue))
    k = np.arange(1, 20_000)
    peak = float((verdict.spectral_radius(eta) ** k * abs(eigenvalue) * eta * k).max())
    assert peak == pytest.approx(abs(eigenvalue) / eigenvalue.real / np.e, rel=0.02)
    assert peak > 1


def test_alignment_is_reported() -> None:
    """Errata 13: orthogonal eigenvectors satisfy every ω, so the numbers are given and nothing is judged."""
    A, B = jnp.diag(jnp.array([2.0, 1.0])), jnp.diag(jnp.array([4.0, 1.0]))
    same = alignment(A, B)
    np.testing.assert_allclose(same.diagonal, [1, 1])
    assert (same.norm, same.ratio, same.eigenvector_condition) == pytest.approx((1, 1, 1))
    crossed = alignment(A, jnp.diag(jnp.array([1.0, 4.0])))
    np.testing.assert_allclose(crossed.diagonal, [0, 0], atol=1e-12)


def test_eigenvectors_of_g_are_not_unitary() -> None:
    """Errata 12: G is not normal, so U_Bᴴ is not U_B⁻¹ and bounds gain cond(U_B)."""
    instance = random_instance(2, n=3, hidden=4)
    G = pseudo_hessian(instance.problem, instance.theta)
    assert alignment(instance.J.T @ instance.J, G).eigenvector_condition > 1.01
