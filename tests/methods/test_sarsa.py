from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.methods import SARSA


def test_targets_by_hand(known, table):
    """The logged a' are 1 and 0: 1 + 30 / 2, 2 + 60 / 2, and 3 where the world ended."""
    _, loss, backup, _ = known(SARSA(discount=0.5), table)
    np.testing.assert_array_equal(backup.targets, [16, 32, 3])
    np.testing.assert_array_equal(backup.next_values[:2], [30, 60])
    np.testing.assert_array_equal(backup.next_actions[:2], [1, 0])
    np.testing.assert_array_equal(backup.same_output[:2], [0, 0])
    assert loss == pytest.approx((15**2 + 29**2 + 3**2) / 3)


def test_rows_without_a_next_action_are_dropped_but_terminals_need_none(table):
    cut = dataclasses.replace(table, next_action_known=np.array([True, False, False]))
    np.testing.assert_array_equal(SARSA().prepare(cut).rewards, [1, 3])
    assert len(SARSA().prepare(table)) == 3


def test_data_without_next_actions_are_refused(table):
    unknown = dataclasses.replace(table, next_action_known=np.zeros(3, bool), terminals=np.zeros(3, bool))
    with pytest.raises(UserError, match="sarsa needs the action taken after each row, and three rows holds none"):
        SARSA().prepare(unknown)
