from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.methods import Supervised


def test_targets_are_the_returns(known, table):
    _, loss, backup, info = known(Supervised(discount=0.5), table)
    np.testing.assert_array_equal(backup.targets, [2, 2, 3])
    np.testing.assert_array_equal(backup.values, [1, 3, 0])
    assert loss == pytest.approx((1 + 1 + 9) / 3)
    assert info == {"losses/regression": loss}


def test_its_backup_ties_a_row_to_the_logged_next_pair(known, table):
    learner, _, backup, _ = known(Supervised(discount=0.5), table)
    assert learner.target is None
    np.testing.assert_array_equal(backup.phi_next, np.eye(3)[[1, 2, 0]])
    np.testing.assert_array_equal(backup.next_actions, [1, 0, 0])
    np.testing.assert_array_equal(backup.next_values, [3, 0, 1])
    np.testing.assert_array_equal(backup.bootstraps, [1, 1, 0])


def test_returns_are_of_its_own_discount(table):
    prepared = Supervised(discount=0.1).prepare(table)
    np.testing.assert_allclose(prepared.returns, [1 + 0.1 * 2, 2, 3])
    assert prepared.returns_discount == 0.1


def test_returns_at_its_discount_are_left_as_they_are(table):
    """They may know more than the rows do: those of a table that was cut."""
    whole = dataclasses.replace(table, returns=np.array([7, 8, 9], np.float32))
    np.testing.assert_array_equal(Supervised(discount=0.5).prepare(whole).returns, [7, 8, 9])


def test_returns_that_cannot_be_computed_anew_are_refused(table):
    """A row inside an episode, or its end, was left out: what is left would not add up to its returns."""
    open_end = dataclasses.replace(table, timeouts=np.zeros(3, bool))
    gap = dataclasses.replace(table, next_observations=table.next_observations[[1, 1, 2]])
    for cut in (open_end, gap):
        assert Supervised(discount=0.5).prepare(cut) is cut
        with pytest.raises(UserError, match=r"discounted by 0\.5, .* load it with discount=0\.1"):
            Supervised(discount=0.1).prepare(cut)
