from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.methods import DQN, REM, Spec
from dr3.methods.rem import draw_mixture

KEY = jax.random.key(5)


@pytest.fixture(scope="module")
def started(logged):
    method = REM(hidden=(6,), heads=4, discount=0.9)
    learner = method.init(Spec.of(logged), jax.random.key(0))
    other = method.init(Spec.of(logged), jax.random.key(1))
    return method, learner._replace(target=other.critic), Batch.of(logged)


def test_a_mixture_is_uniform_numbers_over_their_sum():
    alpha, drawn = draw_mixture(KEY, 5), jax.random.uniform(KEY, (5,))
    np.testing.assert_allclose(alpha, drawn / (drawn[0] + drawn[1] + drawn[2] + drawn[3] + drawn[4]), rtol=1e-6)
    assert float(alpha.sum()) == pytest.approx(1)
    # Not uniform on the simplex: there the largest of 200 shares would be near ln(200) / 200, here it is near 2 / 200.
    assert float(draw_mixture(KEY, 200).max()) < 0.012


def test_mixing_weights_is_mixing_values(started):
    _, learner, batch = started
    phi = learner.critic.features(batch.observations)
    shares = jnp.array([0.5, 0.25, 0.25, 0.0])
    heads = [phi @ w + b for w, b in zip(learner.critic.head.weight, learner.critic.head.bias, strict=True)]
    mixed = 0.5 * heads[0] + 0.25 * heads[1] + 0.25 * heads[2]
    np.testing.assert_allclose(learner.critic.mixed(shares).values(phi), mixed, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(learner.critic.values(phi), sum(heads) / 4, rtol=1e-4, atol=1e-6)


def test_loss_head_by_head(started):
    """Targets r + γ(1 - d) max_a of the mixed target, the same α on both sides, Huber, the mean."""
    method, learner, batch = started
    alpha = np.asarray(draw_mixture(KEY, 4), np.float64)

    def heads(critic, observations):
        phi = np.asarray(critic.features(observations), np.float64)
        weight, bias = np.asarray(critic.head.weight), np.asarray(critic.head.bias)
        return np.einsum("nd,kda->kna", phi, weight) + bias[:, None]

    q = np.einsum("k,kna->na", alpha, heads(learner.critic, batch.observations))
    following = np.einsum("k,kna->na", alpha, heads(learner.target, batch.next_observations)).max(axis=-1)
    wanted = np.asarray(batch.rewards) + 0.9 * (1 - np.asarray(batch.terminals)) * following
    errors = q[np.arange(len(q)), np.asarray(batch.actions)] - wanted
    expected = np.mean(np.where(np.abs(errors) <= 1, errors**2 / 2, np.abs(errors) - 0.5))
    loss, _ = method.loss(learner.critic, learner, batch, KEY)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert method.loss(learner.critic, learner, batch, jax.random.key(6))[0] != loss


def test_the_tie_is_to_the_action_that_the_mixture_takes(table):
    """By hand: α is about (0.7, 0.3). At s1 it makes 1.4 and 0.9 of (2, 0) and (0, 3), the mean 1 and 1.5; at s2 the
    other way round; at s0 the heads agree."""
    method = REM(hidden=(), heads=2, discount=0.5)
    key = jax.random.key(6)
    np.testing.assert_allclose(draw_mixture(key, 2), [0.7, 0.3], atol=0.01)
    learner = method.init(Spec.of(table), jax.random.key(0))
    heads = jnp.array([[[0.0, 1.0], [2.0, 0.0], [0.0, 2.0]], [[0.0, 1.0], [0.0, 3.0], [3.0, 0.0]]])
    learner = learner._replace(target=eqx.tree_at(lambda critic: critic.head.weight, learner.target, heads))
    _, (backup, _) = method.loss(learner.critic, learner, Batch.of(table), key)
    np.testing.assert_array_equal(backup.next_actions, [0, 1, 1])  # s' is s1, s2, s0
    np.testing.assert_array_equal(backup.same_output, [1, 1, 0])  # a is 0, 1, 0
    # What is told of values is the mean's.
    np.testing.assert_allclose(backup.next_values, [1.5, 1.5, 1])
    np.testing.assert_allclose(backup.targets, [1.75, 2.75, 3])


def test_one_head_is_dqn(started, logged):
    """With K = 1 the mixture is the head."""
    _, _, batch = started
    one = REM(hidden=(6,), heads=1)
    learner: Any = one.init(Spec.of(logged), jax.random.key(0))
    mean = learner.critic.mixed(jnp.ones(1))
    single = learner._replace(critic=mean, target=mean)
    expected, (backup, _) = DQN(hidden=(6,), error="huber").loss(single.critic, single, batch, KEY)
    loss, (told, _) = one.loss(learner.critic, learner, batch, KEY)
    assert loss == pytest.approx(float(expected), rel=1e-6)
    np.testing.assert_allclose(told.targets, backup.targets, rtol=1e-5, atol=1e-6)


def test_acting_and_what_is_told_are_the_plain_mean(started):
    method, learner, batch = started
    phi = learner.critic.features(batch.observations)
    mean = jnp.mean(jnp.einsum("nd,kda->kna", phi, learner.critic.head.weight), axis=0)
    np.testing.assert_array_equal(method.act(learner.critic, batch.observations), mean.argmax(axis=-1))
    _, (backup, _) = method.loss(learner.critic, learner, batch, KEY)
    _, (again, _) = method.loss(learner.critic, learner, batch, jax.random.key(99))
    np.testing.assert_array_equal(backup.values, again.values)
    np.testing.assert_array_equal(backup.phi, phi)


def test_it_starts_as_the_public_networks_do(logged):
    critic = REM(hidden=(100, 50)).init(Spec.of(logged), jax.random.key(0)).critic
    assert critic.head.weight.shape == (200, 50, 3)
    assert not critic.head.bias.any()
    for layer, fan_in in ((critic.trunk.stack[1], 100), (critic.head, 50)):
        limit = (np.sqrt(3) / fan_in) ** 0.5
        assert 0.95 * limit < float(jnp.abs(layer.weight).max()) < limit
    assert not critic.trunk.stack[0].bias.any()


def test_gradients_reach_every_head_in_its_share(started):
    method, learner, batch = started
    slope = jax.grad(lambda critic: method.loss(critic, learner, batch, KEY)[0])(learner.critic)
    alpha = draw_mixture(KEY, 4)
    per_share = slope.head.bias / alpha[:, None]
    np.testing.assert_allclose(per_share, jnp.broadcast_to(per_share[:1], per_share.shape), rtol=1e-4, atol=1e-6)
    assert slope.trunk.stack[0].weight.any()


def test_a_population_without_heads_is_refused():
    with pytest.raises(UserError, match="heads must be at least 1, not 0"):
        dataclasses.replace(REM(), heads=0)
