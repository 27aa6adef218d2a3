from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.methods import CQL, DQN, Spec
from dr3.methods.quantiles import quantile_td
from dr3.networks import Linear, QuantileCritic

KEY = jax.random.key(5)


def start(method, logged):
    learner = method.init(Spec.of(logged), jax.random.key(0))
    return learner._replace(target=method.init(Spec.of(logged), jax.random.key(1)).critic), Batch.of(logged)


def test_loss_by_hand(logged):
    """DQN's Huber loss plus α times the mean of log Σ exp Q(s, ·) - Q(s, a)."""
    method = CQL(hidden=(6,), alpha=0.7)
    learner, batch = start(method, logged)
    loss, (backup, info) = method.loss(learner.critic, learner, batch, KEY)
    q = np.asarray(learner.critic.values(learner.critic.features(batch.observations)), np.float64)
    logged_q = q[np.arange(len(q)), np.asarray(batch.actions)]
    gap = np.mean(np.log(np.exp(q).sum(axis=-1)) - logged_q)
    base = float(DQN(hidden=(6,), error="huber").loss(learner.critic, learner, batch, KEY)[0])
    assert info["losses/td"] == pytest.approx(base, rel=1e-6)
    assert info["losses/cql"] == pytest.approx(gap, rel=1e-5)
    assert loss == pytest.approx(base + 0.7 * gap, rel=1e-5)
    np.testing.assert_allclose(backup.values, logged_q, rtol=1e-4, atol=1e-5)


def test_equal_values_cost_the_log_of_the_number_of_actions(logged):
    method = CQL(hidden=(6,))
    learner, batch = start(method, logged)
    flat = dataclasses.replace(learner.critic, head=jax.tree.map(jnp.zeros_like, learner.critic.head))
    assert method.loss(flat, learner, batch, KEY)[1][1]["losses/cql"] == pytest.approx(np.log(3), rel=1e-6)


def test_without_weight_it_is_dqn(logged):
    method = CQL(hidden=(6,), alpha=0.0)
    learner, batch = start(method, logged)

    def slope(method):
        return jax.grad(lambda critic: method.loss(critic, learner, batch, KEY)[0])(learner.critic)

    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)  # noqa: E731
    jax.tree.map(close, slope(method), slope(DQN(hidden=(6,), error="huber")))


def test_a_negative_weight_is_refused():
    with pytest.raises(UserError, match="alpha must be at least 0, not -1"):
        CQL(alpha=-1)


# --- On QR-DQN ---


class Reads:
    """A trunk that passes observations on."""

    width = 2

    def __call__(self, observations):
        return observations

    def layers(self):
        return {}


def test_quantile_loss_by_hand(logged):
    """One row, two quantiles: θ = (0, 1) against r + γθ' = 1 + 0.5 · (0, 4) = (1, 3), at the levels 1/4 and 3/4."""
    method = CQL(hidden=(2,), quantiles=2, discount=0.5)
    zeros = jnp.zeros((2, 4))
    # Features (1, 0) at s and (0, 1) at s'; the first action's quantiles are the first two outputs. a' is the second
    # action, whose quantiles at s' have the larger mean.
    critic = QuantileCritic(Reads(), Linear(zeros.at[0].set(jnp.array([0.0, 1.0, 9.0, 9.0])), jnp.zeros(4)), 2)
    target = QuantileCritic(Reads(), Linear(zeros.at[1].set(jnp.array([1.0, 1.0, 0.0, 4.0])), jnp.zeros(4)), 2)
    batch = Batch.of(logged.rows(np.arange(1)))._replace(
        observations=jnp.array([[1.0, 0.0]]),
        next_observations=jnp.array([[0.0, 1.0]]),
        actions=jnp.array([0]),
        rewards=jnp.array([1.0]),
        terminals=jnp.array([0.0]),
    )
    backup = method.backup(critic, target, batch.observations, batch.next_observations, batch)
    assert backup.next_actions.tolist() == [1]
    assert backup.targets.tolist() == [1 + 0.5 * 2]
    # Errors: of θ_1 = 0: 1, 3 -> Huber 0.5, 2.5, weight 1/4; of θ_2 = 1: 0, 2 -> 0, 1.5, weight 3/4. Means over j, sum.
    assert quantile_td(critic, target, backup, batch) == pytest.approx(0.25 * 1.5 + 0.75 * 0.75)
    # From the other side an error counts with 1 - level: θ_1 = 4 against 1 and 3 -> errors -3, -1.
    above = dataclasses.replace(critic, head=Linear(zeros.at[0].set(jnp.array([4.0, 1.0, 9.0, 9.0])), jnp.zeros(4)))
    assert quantile_td(above, target, backup, batch) == pytest.approx(0.75 * (2.5 + 0.5) / 2 + 0.75 * 0.75)


def test_the_quantile_base_trains_and_penalises_means(logged):
    method = CQL(hidden=(6,), quantiles=5, alpha=2.0, learning_rate=0.01)
    learner, batch = start(method, logged)
    loss, (backup, info) = method.loss(learner.critic, learner, batch, KEY)
    phi = learner.critic.features(batch.observations)
    quantiles = np.asarray(phi @ learner.critic.head.weight).reshape(len(phi), 3, 5)
    q = quantiles.mean(axis=-1)
    rows = np.arange(len(phi)), np.asarray(batch.actions)
    np.testing.assert_allclose(backup.values, q[rows], rtol=1e-4, atol=1e-5)
    assert info["losses/cql"] == pytest.approx(np.mean(np.log(np.exp(q).sum(-1)) - q[rows]), rel=1e-5)
    assert loss == pytest.approx(float(info["losses/td"] + 2.0 * info["losses/cql"]), rel=1e-6)
    after, before = method.update(learner, batch, KEY, None)
    assert method.update(after, batch, KEY, None)[1] < before
    assert method.act(learner.critic, batch.observations).shape == (len(phi),)
