from __future__ import annotations

import dataclasses

import numpy as np

from dr3.data import Frames
from dr3.methods.cloning import clone_behavior


def rows(table, count, actions, seed=0):
    """`count` rows in states drawn at random, with actions that follow from the state."""
    states = np.random.default_rng(seed).integers(3, size=count)
    one_hot = np.eye(3, dtype=np.float32)
    repeated = table.rows(np.zeros(count, np.int64))
    chosen = actions(states).astype(np.int32)
    return states, dataclasses.replace(
        repeated, observations=one_hot[states], next_observations=one_hot[states], actions=chosen
    )


def test_a_deterministic_policy_is_found(table):
    """The marginal policy (action 0 in one state of three) would give the taken action 5/9 on average."""
    states, data = rows(table, 120, lambda states: states != 1)
    probabilities = clone_behavior(data, hidden=(8,), rounds=10, learning_rate=1e-2, batch_size=32)
    assert probabilities.shape == (120, 2)
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), states != 1)
    assert probabilities[np.arange(120), data.actions].mean() > 0.9


def test_actions_that_say_nothing_are_not_memorised(table):
    """On noise the kept policy is the one that held-out rows like best: about even, never certain."""
    _, data = rows(table, 120, lambda states: np.random.default_rng(1).integers(2, size=len(states)))
    probabilities = clone_behavior(data, hidden=(8,), rounds=10, learning_rate=1e-2, batch_size=32)
    assert probabilities.min() > 0.2


def test_it_is_a_function_of_the_data_and_the_seed(table):
    _, data = rows(table, 120, lambda states: states == 0)
    once, again, other = (clone_behavior(data, hidden=(8,), batch_size=32, rounds=2, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(once, again)
    assert (once != other).any()


def test_a_table_too_small_to_hold_rows_out_is_cloned_all_the_same(table):
    assert clone_behavior(table, hidden=(), rounds=1, batch_size=2).shape == (3, 2)


def as_frames(data):
    """The same observations, each state stored once."""
    store = np.eye(3, dtype=np.float32)
    now, following = (
        Frames(store, np.argmax(column, axis=1).astype(np.int32))
        for column in (data.observations, data.next_observations)
    )
    return dataclasses.replace(data, observations=now, next_observations=following)


def test_frames_are_cloned_as_plain_arrays_are(table, monkeypatch):
    monkeypatch.setattr("dr3.methods.cloning.CHUNK", 5)  # of 12 rows that are held out
    _, data = rows(table, 120, lambda states: states == 0)
    plain, framed = (clone_behavior(one, hidden=(8,), rounds=3, batch_size=32) for one in (data, as_frames(data)))
    np.testing.assert_allclose(framed, plain, rtol=1e-5)


def test_no_column_of_frames_is_made_plain_as_a_whole(table, monkeypatch):
    for module in ("data.frames", "methods.cloning"):
        monkeypatch.setattr(f"dr3.{module}.CHUNK", 7)
    sizes = []
    gather = Frames.__getitem__

    def spied(column, index):
        found = gather(column, index)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(Frames, "__getitem__", spied)
    _, data = rows(table, 110, lambda states: states == 0)  # 11 are held out
    clone_behavior(as_frames(data), hidden=(8,), rounds=1, steps_per_round=1, batch_size=4)
    assert max(sizes) == 7
