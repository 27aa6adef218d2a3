"""IQL with discrete actions on three rows: Q and Q̄ are written down in conftest, V and π here."""

from __future__ import annotations

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.methods import IQL, DiscreteBC
from dr3.methods.expectiles import advantage_weights, expectile_loss

V = [8.0, 35.0, 61.0]  # at s0, s1, s2; Q̄ at the logged actions is 10, 30, 60
LOGITS = [[0.0, math.log(3.0)], [0.0, 0.0], [math.log(4.0), 0.0]]


def with_known(learner):
    """V and log π as above, on states that are one of three."""
    critic = eqx.tree_at(
        lambda c: (c.policy.head.weight, c.policy.head.bias), learner.critic, (jnp.array(LOGITS), jnp.zeros(2))
    )
    if critic.value is not None:
        values = (jnp.array(V)[:, None], jnp.zeros(1))
        critic = eqx.tree_at(lambda c: (c.value.head.weight, c.value.head.bias), critic, values)
    return learner._replace(critic=critic)


def told(method, known, table):
    method = dataclasses.replace(method, hidden=())
    learner = with_known(known(method, table)[0])
    return method.loss(learner.critic, learner, Batch.of(table), jax.random.key(1)), learner


def test_by_hand(known, table):
    """u = Q̄ - V = 2, -5, -1; weights of its squares 0.7, 0.3, 0.3; targets 1 + 35/2, 2 + 61/2, 3."""
    (loss, (backup, info)), _ = told(IQL(discount=0.5, advantage_weight=0.5), known, table)
    np.testing.assert_allclose(backup.next_values, [35, 61, 8])
    np.testing.assert_allclose(backup.targets, [18.5, 32.5, 3])
    np.testing.assert_array_equal(backup.next_actions, [1, 0, 0])  # as logged
    assert info["losses/td"] == pytest.approx((17.5**2 + 29.5**2 + 3**2) / 3)
    assert info["losses/value"] == pytest.approx((0.7 * 4 + 0.3 * 25 + 0.3 * 1) / 3)
    # π(a|s) = 1/4, 1/2, 4/5
    policy = -(math.exp(1) * math.log(0.25) + math.exp(-2.5) * math.log(0.5) + math.exp(-0.5) * math.log(0.8)) / 3
    assert info["losses/policy"] == pytest.approx(policy, rel=1e-5)
    assert loss == pytest.approx(float(sum(info.values())), rel=1e-6)


def test_where_no_next_action_was_logged_the_tie_is_to_the_policys(known, table):
    lost = dataclasses.replace(table, next_action_known=np.array([False, True, False]))
    method = dataclasses.replace(IQL(), hidden=(1,))
    marked = method.prepare(lost)
    np.testing.assert_array_equal(marked.next_actions, [-1, 0, 0])
    (_, (backup, _)), learner = told(IQL(), known, marked)
    np.testing.assert_array_equal(backup.next_actions, [0, 0, 0])  # at s1 both are likely, and the first is taken
    np.testing.assert_array_equal(IQL().act(learner.critic, jnp.eye(3)), [1, 0, 0])


def test_no_weight_is_above_100():
    np.testing.assert_allclose(advantage_weights(jnp.array([0.0, 1.0, 9.0]), 3.0), [1, math.exp(3), 100], rtol=1e-6)


def test_the_expectile_by_bisection():
    """Where the loss of a constant is least, its derivative is 0; SciPy's expectile of the same numbers."""
    from scipy.stats import expectile

    numbers = np.array([0.0, 1.0, 2.0, 7.0])
    for level in (0.5, 0.7, 0.95):
        slope = jax.grad(lambda v, level=level: expectile_loss(jnp.array(numbers) - v, level))
        low, high = 0.0, 7.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        assert low == pytest.approx(expectile(numbers, level), abs=1e-4)


def test_discrete_cloning_by_hand(known, table):
    """-log π(a|s), and targets with Σ π(a'|s') Q̄: at s1 (40 + 30) / 2, at s2 (4 · 60 + 50) / 5."""
    (loss, (backup, info)), learner = told(DiscreteBC(discount=0.5), known, table)
    assert info["losses/cloning"] == pytest.approx(-(math.log(0.25) + math.log(0.5) + math.log(0.8)) / 3, rel=1e-5)
    np.testing.assert_allclose(backup.targets, [1 + 0.5 * 35, 2 + 0.5 * 58, 3], rtol=1e-6)
    np.testing.assert_array_equal(backup.next_actions, [0, 0, 1])
    np.testing.assert_allclose(backup.same_output, [0.5, 0.2, 0.25], rtol=1e-5)
    assert loss == pytest.approx(float(info["losses/td"] + info["losses/cloning"]), rel=1e-6)
    np.testing.assert_array_equal(DiscreteBC().act(learner.critic, jnp.eye(3)), [1, 0, 0])
