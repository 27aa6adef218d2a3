from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from dr3.networks import GaussianPolicy, TanhGaussian
from dr3.networks.gaussian_policy import LARGEST_MEAN, LOG_STD

KEY = jax.random.key(0)


def density(mean, std, action):
    """Of tanh of a Gaussian, by the change of variables."""
    return stats.norm.pdf(np.arctanh(action), mean, std) / (1 - action**2)


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.7, 0.3), (-1.0, 2.0)])
def test_the_density_is_the_change_of_variables_and_integrates_to_one(mean, std):
    policy = TanhGaussian(jnp.array([[mean]]), jnp.log(jnp.array([[std]])))
    grid = np.linspace(-0.99, 0.99, 7)
    ours = np.exp(policy.log_density(jnp.asarray(grid, jnp.float32)[:, None, None]))[:, 0]
    np.testing.assert_allclose(ours, density(mean, std, grid), rtol=2e-4)
    u = np.linspace(mean - 9 * std, mean + 9 * std, 4001)
    # ∫ π(a) da = ∫ π(tanh u) (1 - tanh² u) du
    of_u = np.exp(np.asarray(policy.log_density_at(jnp.asarray(u, jnp.float32)[:, None, None]), np.float64))[:, 0]
    assert integrate.simpson(of_u / np.cosh(u) ** 2, x=u) == pytest.approx(1, abs=1e-3)


def test_a_sample_carries_its_own_density():
    policy = TanhGaussian(jnp.array([[0.3, -0.2], [1.0, 0.5]]), jnp.array([[-1.0, 0.2], [0.0, -2.0]]))
    drawn = policy.sample(KEY, 5)
    assert drawn.actions.shape == (5, 2, 2)
    assert drawn.log_density.shape == (5, 2)
    np.testing.assert_allclose(drawn.log_density, policy.log_density_at(drawn.raw), rtol=1e-5, atol=1e-5)
    std = np.exp(np.asarray(policy.log_std))
    by_scipy = np.log(density(np.asarray(policy.mean), std, np.asarray(drawn.actions, np.float64))).sum(-1)
    np.testing.assert_allclose(drawn.log_density, by_scipy, rtol=1e-3, atol=1e-3)


def test_far_out_nothing_is_lost():
    """At u = 12 tanh is 1 in float32, and 1 - tanh² is 0; log(1 - tanh²) = log 4 - 2u to all digits."""
    policy = TanhGaussian(jnp.array([[9.0]]), jnp.array([[0.0]]))
    expected = stats.norm.logpdf(12, 9, 1) - (np.log(4) - 24)
    assert policy.log_density_at(jnp.array([[12.0]]))[0] == pytest.approx(expected, rel=1e-6)
    slope = jax.grad(lambda mean: TanhGaussian(mean, jnp.array([[0.0]])).sample(KEY).log_density.sum())
    assert np.isfinite(slope(jnp.array([[9.0]]))).all()


def test_logged_actions_at_the_bounds_have_a_density():
    policy = TanhGaussian(jnp.zeros((1, 1)), jnp.zeros((1, 1)))
    assert policy.log_density(jnp.ones((1, 1)))[0] == pytest.approx(float(np.log(density(0, 1, 0.999))), rel=1e-3)


def test_means_and_spreads_are_clipped():
    policy = GaussianPolicy.create((3,), 2, (4,), key=KEY)
    far = jax.tree.map(lambda leaf: 1e4 * jnp.ones_like(leaf), policy)
    told = far(jnp.ones((5, 3)))
    assert (told.mean == LARGEST_MEAN).all()
    assert (told.log_std == LOG_STD[1]).all()
    assert told.mode.shape == (5, 2)
    assert list(policy.layers()) == ["dense1", "head"]
