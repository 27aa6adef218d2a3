"""Gradients taken a block of rows at a time."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.data.transitions import ContinuousActions
from dr3.methods import ContinuousCQL, Spec, continuous_cql
from dr3.methods.blockwise import mean_over_rows
from dr3.methods.continuous_cql import CACHED
from dr3.networks.kernels.blocks import blocks_for


def function(weights, rows, given):
    """(n, 3), (n, 2) -> (2, n): several values a row, as several critics give."""
    x = jnp.tanh(rows @ weights["w"] + given[:, :1])
    return jnp.stack([jnp.sum(x, axis=1), given[:, 1] * x[:, 0] ** 2])


@pytest.mark.parametrize("blocks", [2, 3, 6])
def test_blocks_change_neither_the_mean_nor_its_gradient(blocks):
    rng = np.random.default_rng(0)
    weights = {"w": jnp.asarray(rng.normal(size=(3, 4)), jnp.float32)}
    rows, given = (jnp.asarray(rng.normal(size=(6, width)), jnp.float32) for width in (3, 2))

    def slopes(count):
        def made_of(weights, rows, given):  # something that is not the mean itself: the factor must come through
            return jnp.exp(2 * mean_over_rows(function, weights, rows, given, count))

        return jax.jit(jax.value_and_grad(made_of, argnums=(0, 1, 2)))(weights, rows, given)

    whole, parts = slopes(1), slopes(blocks)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), whole, parts)
    assert not np.any(whole[1][2])  # what is given is constant, either way
    assert np.any(whole[1][1])


@pytest.mark.slow
def test_cql_learns_the_same_in_blocks(monkeypatch):
    rng = np.random.default_rng(1)
    rows = 16
    observations, following = (jnp.asarray(rng.normal(size=(rows, 3)), jnp.float32) for _ in range(2))
    actions = jnp.asarray(rng.uniform(-1, 1, (rows, 2)), jnp.float32)
    rewards = jnp.asarray(rng.normal(size=rows), jnp.float32)
    batch = Batch(observations, actions, rewards, following, jnp.zeros(rows), actions, rewards, None)
    method = ContinuousCQL(hidden=(8, 8), policy_hidden=(8,), sampled_actions=2)
    learner = jax.jit(lambda key: method.init(Spec((3,), ContinuousActions(2)), key))(jax.random.key(0))

    def slope(cached):
        monkeypatch.setattr(continuous_cql, "CACHED", cached)
        loss = jax.grad(lambda critic: method.loss(critic, learner, batch, jax.random.key(1))[0])
        return jax.jit(loss)(learner.model)

    in_two = 8 * 4 * 3 * 2 * 8  # bytes for 8 rows, 6 actions, 8 units
    whole, parts = slope(CACHED), slope(in_two)
    assert blocks_for(rows, in_two // 8, in_two) == 2
    assert blocks_for(256, 4 * 30 * 256, CACHED) == 4  # the size it is meant for: 30 actions, 256 units
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), whole, parts)
