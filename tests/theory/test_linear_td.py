"""Linear TD on fixed features and Proposition 3.2."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from dr3.theory import judge_features, linear_td, linear_td_far, outcome


def test_one_feature_by_hand() -> None:
    """φ = 1, φ' = 1.5, γ = 0.8: 0.8·1.5 = 1.2 times the norm. g_k = (1 + 0.2 η)ᵏ g_0 diverges."""
    phi, phi_next = jnp.array([[1.0]]), jnp.array([[1.5]])
    verdict = judge_features(phi, phi_next, 0.8)
    assert verdict.co_adaptation == pytest.approx(1.2)
    assert verdict.trace == pytest.approx(-0.2)
    assert verdict.proposition_applies
    assert not verdict.converges
    norms = linear_td(phi, phi_next, jnp.array([1.0]), 0.8, eta=0.5, steps=3)
    np.testing.assert_allclose(norms, [1, 1.1, 1.21, 1.331])


def test_features_that_are_all_zero_pull_at_nothing() -> None:
    verdict = judge_features(jnp.zeros((2, 3)), jnp.zeros((2, 3)), 0.9)
    assert (verdict.co_adaptation, verdict.proposition_applies) == (0.0, False)


def test_the_condition_is_not_necessary() -> None:
    """Errata 15: a positive trace with one negative eigenvalue diverges although the proposition is silent."""
    phi, phi_next = jnp.eye(2), jnp.diag(jnp.array([-3.0, 2.0]))
    verdict = judge_features(phi, phi_next, 0.9)
    assert verdict.trace > 0
    assert not verdict.proposition_applies
    assert not verdict.converges
    assert outcome(linear_td(phi, phi_next, jnp.ones(2), 0.9, eta=0.1, steps=200)) == "diverges"


def test_overparameterised_features_have_zeros_that_do_not_matter() -> None:
    """Errata 15: n < d, so Φᵀ(Φ - γΦ') cannot have all eigenvalues positive; linear TD converges all the same."""
    random = np.random.default_rng(0)
    phi = jnp.asarray(random.standard_normal((2, 5)))
    phi_next = 0.3 * jnp.asarray(random.standard_normal((2, 5)))
    eigenvalues = np.linalg.eigvals(np.asarray(phi.T @ (phi - 0.9 * phi_next)))
    assert (np.abs(eigenvalues) < 1e-12).sum() == 3
    verdict = judge_features(phi, phi_next, 0.9)
    assert verdict.converges
    norms = linear_td(phi, phi_next, jnp.ones(2), 0.9, eta=verdict.stability.largest_step / 2, steps=400)
    assert outcome(norms) == "converges"


def test_squaring_is_stepping() -> None:
    random = np.random.default_rng(1)
    phi, phi_next = (jnp.asarray(random.standard_normal((3, 4))) for _ in range(2))
    near = linear_td(phi, phi_next, jnp.ones(3), 0.9, eta=0.05, steps=16)
    far = linear_td_far(phi, phi_next, jnp.ones(3), 0.9, eta=0.05, doublings=4)
    np.testing.assert_allclose(far, near[jnp.array([1, 2, 4, 8, 16])], rtol=1e-10)


def test_repeated_rows_do_not_drift_in_the_null_space() -> None:
    """2⁵⁰ steps would blow rounding up to any size there."""
    random = np.random.default_rng(2)
    phi = jnp.asarray(random.standard_normal((3, 6)))[jnp.array([0, 1, 1, 2])]
    norms = linear_td_far(phi, 0.2 * phi, jnp.ones(4), 0.9, eta=0.05, doublings=50)
    assert outcome(norms) == "converges"


@pytest.mark.parametrize(
    ("norms", "verdict"), [([1, 1e-4], "converges"), ([1, jnp.inf], "diverges"), ([1, 0.5], "undecided")]
)
def test_outcome(norms: list, verdict: str) -> None:
    assert outcome(jnp.asarray(norms)) == verdict
