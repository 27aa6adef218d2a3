"""Critics that were trained elsewhere: the same critic in every form must get the same numbers."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest

import dr3
from dr3.errors import UserError

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
    assert found["td/error"] == pytest.approx(((q[np.arange(len(q)), logged.actions] - target) ** 2).mean())


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
    assert found["td/error"] == pytest.approx(((q - target) ** 2).mean())


def test_a_history_shows_growth(logged):
    grown = {0: relu_features, 10: relu_features, 20: lambda s, a: 4 * relu_features(s, a)}
    found = dr3.diagnose(grown, logged, values=lambda s, a: np.ones(len(s)))
    assert [verdict.name for verdict in found.members[0].verdicts] == ["co-adaptation"]
    assert "grown 16x since step 0 while Q stayed level" in str(found)
    assert found.members[0].verdicts[0].since == 20


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
