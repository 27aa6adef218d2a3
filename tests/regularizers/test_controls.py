"""The srank penalty and the feature-norm control."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.backup import Backup
from dr3.regularizers import DR3, FeatureNorm, SrankPenalty
from dr3.regularizers.parse import parse_regularizer


def backup(phi, phi_next=None, bootstraps=None) -> Backup:
    phi = jnp.asarray(phi, jnp.float32)
    nothing = jnp.zeros(phi.shape[-2])
    return Backup(
        phi=phi,
        phi_next=phi if phi_next is None else jnp.asarray(phi_next, jnp.float32),
        values=nothing,
        next_values=nothing,
        targets=nothing,
        bootstraps=nothing + 1 if bootstraps is None else jnp.asarray(bootstraps),
        discounts=nothing,
        actions=nothing.astype(int),
        next_actions=nothing.astype(int),
        same_output=nothing,
    )


# --- srank ---


@pytest.mark.parametrize(
    ("phi", "penalty"),
    [
        ([[3.0, 0.0], [0.0, 1.0]], 9 - 1),
        ([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 9 - 1),  # fewer rows than columns: two singular values
        ([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]], 9 - 1),  # … and more: two as well
        ([[1.0, 2.0], [1.0, 2.0]], 10 - 0),
        ([[[3.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]], (8 + 0) / 2),  # an ensemble
    ],
)
def test_srank_penalty_by_hand(phi, penalty):
    assert SrankPenalty()(backup(phi)) == pytest.approx(penalty, rel=1e-5, abs=1e-6)


def test_srank_gradient_is_that_of_the_singular_values():
    phi = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    slope = jax.grad(lambda phi: SrankPenalty()(backup(phi)))(jnp.asarray(phi))
    u, sigma, v = np.linalg.svd(phi.astype(np.float64), full_matrices=False)
    expected = 2 * (sigma[0] * np.outer(u[:, 0], v[0]) - sigma[-1] * np.outer(u[:, -1], v[-1]))
    np.testing.assert_allclose(slope, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("phi", [np.zeros((3, 2)), np.eye(3), np.ones((3, 3))])
def test_srank_gradient_is_finite_where_singular_values_repeat(phi):
    slope = jax.grad(lambda phi: SrankPenalty()(backup(phi)))(jnp.asarray(phi, jnp.float32))
    assert np.isfinite(slope).all()


# --- The norm ---

PHI, PHI_NEXT = [[1.0, 2.0], [0.0, 3.0]], [[2.0, 0.0], [1.0, 1.0]]


def test_feature_norm_by_hand():
    # Halves of 5 + 4 and 9 + 2, the mean of two rows.
    assert FeatureNorm()(backup(PHI, PHI_NEXT)) == pytest.approx((4.5 + 5.5) / 2)
    assert FeatureNorm()(backup(PHI, PHI_NEXT, [1.0, 0.0])) == pytest.approx(4.5 / 2)
    assert FeatureNorm(mask_terminals=False)(backup(PHI, PHI_NEXT, [1.0, 0.0])) == pytest.approx((4.5 + 5.5) / 2)


def test_feature_norm_is_never_below_dr3_and_equal_where_both_sides_are_one():
    phi, phi_next = np.random.default_rng(1).normal(size=(2, 9, 4))
    assert FeatureNorm()(backup(phi, phi_next)) > DR3()(backup(phi, phi_next))
    assert FeatureNorm()(backup(phi)) == pytest.approx(float(DR3()(backup(phi))), rel=1e-6)


def test_words():
    assert parse_regularizer("srank") == SrankPenalty(0.001)
    assert parse_regularizer("norm:0.01") == FeatureNorm(0.01)
