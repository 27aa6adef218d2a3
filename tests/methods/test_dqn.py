from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.methods import DQN

HALF = DQN(discount=0.5)


def test_targets_by_hand(known, table):
    """1 + max(40, 30) / 2; 2 + max(60, 50) / 2, since a time-out bootstraps; 3, since a terminal does not."""
    _, _, backup, _ = known(HALF, table)
    np.testing.assert_array_equal(backup.targets, [21, 32, 3])
    np.testing.assert_array_equal(backup.values, [1, 3, 0])
    np.testing.assert_array_equal(backup.next_values, [40, 60, 20])
    np.testing.assert_array_equal(backup.bootstraps, [1, 1, 0])
    np.testing.assert_array_equal(backup.next_actions, [0, 0, 1])
    np.testing.assert_array_equal(backup.same_output, [1, 0, 0])
    np.testing.assert_array_equal(backup.phi, np.eye(3)[[0, 1, 2]])
    np.testing.assert_array_equal(backup.phi_next, np.eye(3)[[1, 2, 0]])


def test_squared_and_huber_errors_by_hand(known, table):
    """Errors -20, -29, -3."""
    _, squared, _, info = known(HALF, table)
    assert squared == pytest.approx((400 + 841 + 9) / 3)
    assert info["losses/td"] == squared
    _, huber, _, _ = known(dataclasses.replace(HALF, error="huber"), table)
    assert huber == pytest.approx((19.5 + 28.5 + 2.5) / 3)


def test_huber_is_half_the_square_where_errors_are_small(known, table):
    small = dataclasses.replace(table, rewards=np.array([0, 0, 0.5], np.float32), terminals=np.ones(3, bool))
    _, huber, _, _ = known(DQN(discount=0.5, error="huber"), small)  # errors 1, 3, -0.5
    assert huber == pytest.approx((0.5 + 2.5 + 0.125) / 3)


def test_double_q_learning_picks_with_the_online_critic_and_values_with_the_target(known, table):
    """Online, action 1 is best in s1 and s2: 1 + 30 / 2, 2 + 50 / 2."""
    _, loss, backup, _ = known(dataclasses.replace(HALF, double=True), table)
    np.testing.assert_array_equal(backup.targets, [16, 27, 3])
    np.testing.assert_array_equal(backup.next_actions, [1, 1, 1])
    np.testing.assert_array_equal(backup.same_output, [0, 1, 0])
    assert loss == pytest.approx((225 + 576 + 9) / 3)


def test_the_gradient_is_that_of_a_regression_to_constants(known, table):
    """2/3 of each error on the entry Q(s, a) that the row reads, nothing anywhere else."""
    learner, _, _, _ = known(HALF, table)
    method = dataclasses.replace(HALF, hidden=())
    gradient = jax.grad(lambda critic: method.loss(critic, learner, Batch.of(table), jax.random.key(0))[0])
    np.testing.assert_allclose(
        gradient(learner.critic).head.weight, 2 / 3 * np.array([[-20, 0], [0, -29], [-3, 0]]), rtol=1e-6
    )


@pytest.mark.parametrize(("rate", "moved"), [(1.0, 3.0), (0.25, 40 + 0.25 * (3 - 40))])
def test_the_target_moves_by_its_rate(known, table, rate, moved):
    learner, _, _, _ = known(DQN(), table)
    learner = learner._replace(critic=jax.tree.map(lambda leaf: jnp.full_like(leaf, 3.0), learner.critic))
    after = DQN(target_rate=rate).synchronise(learner)
    assert after.target is not None
    assert after.target.head.weight[1, 0] == moved
    assert after.critic is learner.critic


def test_acting_is_greedy_and_the_first_of_the_best(known, table):
    learner, _, _, _ = known(HALF, table)
    observations = jnp.array([[1.0, 0, 0], [0, 1, 0], [2, -1, 0]])  # values (1, 2), (0, 3), (2, 1)
    np.testing.assert_array_equal(HALF.act(learner.critic, observations), [1, 1, 0])
    np.testing.assert_array_equal(HALF.act(learner.critic, jnp.zeros((1, 3))), [0])
    np.testing.assert_array_equal(HALF.values(learner.critic, observations, jnp.array([0, 1, 0])), [1, 3, 2])


def test_continuous_actions_are_refused(table):
    from dr3.data.transitions import ContinuousActions

    with pytest.raises(UserError, match="dqn needs discrete actions, but those of three rows are continuous"):
        DQN().prepare(dataclasses.replace(table, action_space=ContinuousActions(2)))


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"target_period": 0}, "target_period must be at least 1, not 0"),
        ({"target_rate": 1.5}, "target_rate must be between 0 and 1, not 1.5"),
        ({"discount": 1.01}, "discount must be between 0 and 1"),
        ({"learning_rate": float("nan")}, "learning_rate must be a finite number, not nan"),
        ({"batch_size": -1}, "batch_size must be at least 0"),
        ({"hidden": (8, 0)}, "every width in hidden must be at least 1, not 0"),
    ],
)
def test_hyperparameters_that_cannot_work_are_refused(setting, says):
    with pytest.raises(UserError, match=says):
        DQN(**setting)


def test_a_critic_without_features_to_learn_is_refused_before_training(table):
    with pytest.raises(UserError, match="the number of widths in hidden must be at least 1, not 0"):
        DQN(hidden=()).prepare(table)
