from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dr3.data import Frames, assemble
from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.methods import Supervised
from dr3.methods.base import gradients
from dr3.regularizers import DR3, LabelNoiseDR3


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


def test_the_returns_of_a_single_row_are_computed_anew(table):
    prepared = Supervised(discount=0.1).prepare(table.rows(slice(2, 3)))
    np.testing.assert_array_equal(prepared.returns, [3])


@pytest.mark.parametrize("loaded_with", [0.5, 0.0])
def test_a_reward_that_only_the_returns_know_is_not_lost(loaded_with):
    """The last row of an episode that was cut has no s', and is dropped; at discount 0 nothing is left of it."""
    columns = {
        "observations": np.arange(3.0)[:, None],
        "actions": np.array([0, 1, 0]),
        "rewards": np.array([1.0, 2.0, 4.0]),
        "terminals": np.zeros(3, bool),
        "timeouts": np.array([False, False, True]),
    }
    data = assemble(columns, source="rows", name="rows", discount=loaded_with)
    assert len(data) == 2
    with pytest.raises(UserError, match=r"load it with discount=0\.25"):
        Supervised(discount=0.25).prepare(data)
    again = assemble(columns, source="rows", name="rows", discount=0.25)
    np.testing.assert_array_equal(Supervised(discount=0.25).prepare(again).returns, [1.75, 3])


def test_episodes_of_frames_are_followed_some_rows_at_a_time(table, monkeypatch):
    sizes = []
    gather = Frames.__getitem__
    monkeypatch.setattr(Frames, "__getitem__", lambda column, index: sizes.append(index) or gather(column, index))
    monkeypatch.setattr("dr3.data.frames.CHUNK", 2)
    store = np.arange(8, dtype=np.uint8)[:, None]
    rows = np.arange(7, dtype=np.int32)
    data = dataclasses.replace(
        table.rows(np.full(7, 2)),
        observations=Frames(store, rows),
        next_observations=Frames(store, rows + 1),
        terminals=rows == 6,
        episodes=np.zeros(7, np.int32),
    )
    assert Supervised(discount=0.0).prepare(data).returns.tolist() == [3] * 7
    assert [len(index) for index in sizes] == [2] * 6


@pytest.fixture
def unlogged(table):
    """The same rows, all with action 0; what came after the time-out was not logged."""
    return dataclasses.replace(
        table, actions=np.zeros(3, np.int32), next_actions=np.zeros(3, np.int32), next_action_known=table.episodes > 1
    ).rows(slice(1, 3))


def test_a_row_whose_next_action_was_not_logged_is_tied_to_no_action(known, unlogged):
    method = Supervised(discount=0.5)
    _, _, backup, _ = known(method, method.prepare(unlogged))
    np.testing.assert_array_equal(backup.same_output, [0, 1])
    assert backup.next_actions[0] not in (0, 1)
    assert DR3(per_action=True)(backup) == 0
    assert LabelNoiseDR3(per_action=True)(backup) == 0


def test_a_row_whose_next_action_was_not_logged_is_the_same_to_plain_dr3(known, unlogged):
    method = Supervised(discount=0.5)
    marked, before = (known(method, data)[2] for data in (method.prepare(unlogged), unlogged))
    for field in ("phi", "phi_next", "values", "next_values", "targets", "bootstraps", "discounts"):
        np.testing.assert_array_equal(getattr(marked, field), getattr(before, field), err_msg=field)


def test_no_gradient_reaches_an_action_that_was_not_logged(known, unlogged):
    method = Supervised(discount=0.5)
    data = method.prepare(unlogged)
    learner, _, backup, _ = known(method, data)
    _, following = gradients(method, learner.critic, Batch.of(data), backup)
    assert (following[0] == 0).all()
    assert (following[1] != 0).any()


def test_where_every_next_action_is_known_the_table_is_left_as_it_is(table):
    assert Supervised(discount=0.5).prepare(table) is table
