from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.networks import ActionCritic, ActorCritic, TwinCritics

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def critic() -> ActionCritic:
    return jax.jit(lambda key: ActionCritic.create((3,), 2, (5, 4), key=key))(KEY)


def test_it_is_a_network_over_state_and_action(critic):
    s, a = jax.random.normal(KEY, (6, 3)), jax.random.normal(jax.random.key(1), (6, 2))
    both = np.concatenate([s, a], axis=1)
    x = np.maximum(both @ np.concatenate([critic.first.state_weight, critic.first.action_weight]) + 0.1, 0)
    phi = np.maximum(x @ np.asarray(critic.stack[0].weight) + 0.1, 0)
    np.testing.assert_allclose(critic.features(s, a), phi, rtol=1e-5, atol=1e-6)
    q = phi @ np.asarray(critic.head.weight)[:, 0] + np.asarray(critic.head.bias)[0]
    np.testing.assert_allclose(critic.values(critic.features(s, a)), q, rtol=1e-4, atol=1e-6)
    assert np.abs(critic.head.weight).max() <= 3e-3
    assert list(critic.layers()) == ["dense1", "dense2", "head"]


def test_many_actions_at_one_state(critic):
    s, a = jax.random.normal(KEY, (6, 3)), jax.random.normal(KEY, (4, 6, 2))
    together = critic.features(s, a)
    assert together.shape == (4, 6, 4)
    np.testing.assert_allclose(together[2], critic.features(s, a[2]), rtol=1e-5, atol=1e-6)


def test_twins_differ_and_keep_their_own_axis():
    twins = jax.jit(lambda key: TwinCritics.create((3,), 2, (5, 4), key=key))(KEY)
    s, a = jnp.ones((6, 3)), jnp.ones((7, 6, 2))
    seen = twins.states(s)
    phi = twins.features(seen, a)
    assert phi.shape == (2, 7, 6, 4)
    np.testing.assert_allclose(twins.q(seen, a), twins.values(phi), rtol=1e-5, atol=1e-7)
    assert (phi[0] != phi[1]).any()
    layers = twins.layers()
    assert list(layers) == ["dense1", "dense2", "head"]
    zero = jax.tree.map(jnp.zeros_like, layers["head"])
    assert not eqx.tree_at(lambda t: t.layers()["head"], twins, zero).q(seen, a).any()


def test_actions_go_to_the_unit_range_and_back():
    build = lambda key: ActorCritic.create(  # noqa: E731
        (3,), 2, hidden=(4,), policy_hidden=(4,), low=-2.0, high=6.0, key=key
    )
    agent = eqx.filter_jit(build)(KEY)
    np.testing.assert_array_equal(agent.to_unit(jnp.array([-2.0, 2.0, 6.0])), [-1, 0, 1])
    np.testing.assert_array_equal(agent.to_range(jnp.array([-1.0, 0.0, 1.0])), [-2, 2, 6])
    odd = jnp.array([0.123456789, -0.987654321])
    plain = dataclasses.replace(agent, low=-1.0, high=1.0)
    np.testing.assert_array_equal(plain.to_unit(odd), odd)  # ±1 changes nothing, to the last bit
    np.testing.assert_array_equal(plain.to_range(odd), odd)


def test_no_array_is_weakly_typed():
    """One that is changes its type in the first update: every compiled loop would be compiled again, twice."""
    build = lambda key: ActorCritic.create((3,), 2, hidden=(4, 4), policy_hidden=(4,), low=-1.0, high=1.0, key=key)  # noqa: E731
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(jax.eval_shape(build, KEY)))
