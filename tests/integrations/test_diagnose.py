"""Critics that were trained elsewhere: the same critic in every form must get the same numbers."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest

import dr3
from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.integrations.critic import OutsideCritic
from dr3.methods import DQN, Spec, backup_of

W = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
HEAD, BIAS = np.array([[1.0, 2, 0], [0, 1, 1], [1, 0, 1]]), np.array([0.5, 0, -0.5])


def relu_features(observations, actions):
    return np.maximum(observations @ W, 0)


def columns(found):
    return {name: values[0, -1] for name, values in found.measurements.columns.items()}


def test_a_function_and_its_last_layer(logged):
    found = columns(dr3.diagnose(relu_features, logged, last_layer=(HEAD, BIAS), discount=0.9))
    phi, following = relu_features(logged.observations, None), relu_features(logged.next_observations, None)
    q = phi @ HEAD.T + BIAS
    assert found["q/mean"] == pytest.approx(q[np.arange(len(q)), logged.actions].mean())
    bootstraps = ~logged.terminals
    expected = ((phi * following).sum(-1) * bootstraps).sum() / bootstraps.sum()
    assert found["features/dot_product"] == pytest.approx(expected)
    target = logged.rewards + 0.9 * bootstraps * (following @ HEAD.T + BIAS).max(-1)  # a' is the greedy one
    assert found["td/error_online"] == pytest.approx(((q[np.arange(len(q)), logged.actions] - target) ** 2).mean())


def test_the_backup_is_that_of_the_same_critic_at_home(logged):
    method, spec = DQN(hidden=(8, 6), discount=0.9), Spec.of(logged)
    critic = method.model(method.init(spec, jax.random.key(0)))
    at_home = backup_of(method, critic, spec, Batch.of(logged), jax.random.key(1))
    elsewhere = OutsideCritic(
        lambda s, a: critic.features(s), np.asarray(critic.head.weight).T, np.asarray(critic.head.bias)
    ).backup(logged, 0.9)
    for name, ours, theirs in zip(at_home._fields, at_home, elsewhere, strict=True):
        np.testing.assert_allclose(np.asarray(theirs), np.asarray(ours), rtol=1e-4, atol=1e-5, err_msg=name)


def test_actions_that_are_inputs_share_the_one_output(logged):
    """Whole numbers or not: a last layer of one row cannot say which action is best, so a' is the logged one."""
    backup = OutsideCritic(lambda s, a: np.column_stack([s, a]), np.ones((1, 5))).backup(logged, 0.9)
    assert not backup.rows_per_action
    np.testing.assert_array_equal(backup.next_actions[:, 0], logged.next_actions)
    np.testing.assert_array_equal(backup.same_output, np.ones(48))
    np.testing.assert_allclose(backup.next_values, logged.next_observations.sum(1) + logged.next_actions, rtol=1e-5)


def test_features_alone_say_nothing_about_q(logged):
    found = columns(dr3.diagnose(relu_features, logged))
    assert "features/co_adaptation" in found
    assert not any(name.startswith(("q/", "td/")) for name in found)


def test_a_weight_that_lies_the_other_way_is_refused(logged):
    sideways = np.ones((3, 5))
    with pytest.raises(UserError, match=r"reads 5 features, and there are 3; its weight is \(actions, features\)"):
        dr3.diagnose(relu_features, logged, last_layer=sideways)


def test_values_and_a_policy_of_ones_own(logged):
    found = columns(
        dr3.diagnose(
            relu_features,
            logged,
            values=lambda s, a: s[:, 0] + a,
            policy=lambda s: np.zeros(len(s), int),
            discount=0.9,
        )
    )
    q = logged.observations[:, 0] + logged.actions
    target = logged.rewards + 0.9 * ~logged.terminals * logged.next_observations[:, 0]
    assert found["td/error_online"] == pytest.approx(((q - target) ** 2).mean())


def test_a_history_shows_growth(logged):
    grown = {0: relu_features, 10: relu_features, 20: lambda s, a: 4 * relu_features(s, a)}
    found = dr3.diagnose(grown, logged, values=lambda s, a: np.ones(len(s)))
    assert [note.name for note in found.members[0].notes] == ["co-adaptation"]
    assert "grown 16x since step 0 while Q stayed level" in str(found)
    assert found.members[0].notes[0].since == 20


def test_an_equinox_module_is_cut_before_its_last_layer(logged):
    module = eqx.nn.MLP(4, 3, width_size=3, depth=1, key=jax.random.key(0))
    hidden, head = module.layers
    by_hand = dr3.diagnose(
        lambda s, a: np.maximum(s @ np.asarray(hidden.weight).T + np.asarray(hidden.bias), 0),
        logged,
        last_layer=(np.asarray(head.weight), np.asarray(head.bias)),
    )
    found = dr3.diagnose(module, logged, last_layer=lambda module: module.layers[-1])
    assert columns(found) == pytest.approx(columns(by_hand), rel=1e-4, abs=1e-6)


def test_mistakes_are_said_in_one_sentence(logged):
    with pytest.raises(UserError, match="one row for each"):
        dr3.diagnose(lambda s, a: s[0], logged)
    with pytest.raises(UserError, match="reads 2 features, and there are 3"):
        dr3.diagnose(relu_features, logged, last_layer=np.ones((3, 2)), policy=lambda s: np.zeros(len(s), int))
    with pytest.raises(UserError, match="a function"):
        dr3.diagnose(3, logged)
    with pytest.raises(UserError, match="no critic"):
        dr3.diagnose({}, logged)
