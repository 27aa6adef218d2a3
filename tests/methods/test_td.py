from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.methods import TD


def test_targets_by_hand(known, table):
    """40/4 + 30·3/4 = 32.5 and 60/2 + 50/2 = 55, halved, plus the reward."""
    _, loss, backup, _ = known(TD(discount=0.5), table)
    np.testing.assert_allclose(backup.next_values[:2], [32.5, 55])
    np.testing.assert_allclose(backup.targets, [17.25, 29.5, 3])
    np.testing.assert_array_equal(backup.next_actions, [1, 0, 0])  # the likeliest, the first of equals
    np.testing.assert_allclose(backup.same_output, [0.25, 0.5, 0.9])  # π(a | s') for the row's own a
    assert loss == pytest.approx((16.25**2 + 26.5**2 + 3**2) / 3)


def test_a_policy_that_always_takes_the_logged_action_makes_it_sarsa(known, table):
    certain = dataclasses.replace(table, next_behavior=np.eye(2, dtype=np.float32)[table.next_actions])
    np.testing.assert_array_equal(known(TD(discount=0.5), certain)[2].targets, [16, 32, 3])


def test_where_the_behavior_comes_from(table):
    assert TD().prepare(table).next_behavior is table.next_behavior
    assert TD(behavior="logged").prepare(table).next_behavior is table.next_behavior
    unknown = dataclasses.replace(table, next_behavior=None)
    with pytest.raises(UserError, match="three rows holds no next_behavior probabilities; train td with --beh"):
        TD(behavior="logged").prepare(unknown)


def test_the_behavior_is_cloned_where_it_is_asked_for_or_not_logged(table, monkeypatch):
    cloned = np.full((3, 2), 0.5, np.float32)
    monkeypatch.setattr("dr3.methods.td.clone_behavior", lambda data, **settings: cloned)
    assert TD(behavior="cloned").prepare(table).next_behavior is cloned
    assert TD().prepare(dataclasses.replace(table, next_behavior=None)).next_behavior is cloned
