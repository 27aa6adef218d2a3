"""What a run has learned, as functions of numpy arrays: compiled, checked, and of what was selected by default."""

from __future__ import annotations

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.files import write_json
from dr3.runs import Runs
from dr3.runs.selected import selected


@pytest.fixture(scope="module")
def seen():
    return np.random.default_rng(0).normal(size=(20, 16)).astype(np.float32)


def test_q_of_all_actions_probabilities_and_masks(small_run, seen):
    """In blocks of a few sizes: 20 rows are one of 64; 600 are two of 512."""
    runs = Runs(small_run)
    values = runs.action_values(seen)
    assert values.shape == (20, 5)
    actions = np.arange(20) % 5
    np.testing.assert_allclose(values[np.arange(20), actions], runs.q(seen, actions), rtol=1e-6)
    np.testing.assert_array_equal(runs.policy(seen), values.argmax(axis=1))
    np.testing.assert_array_equal(runs.probabilities(seen), np.eye(5)[values.argmax(axis=1)])
    forbidden = np.eye(5, dtype=np.bool_)[values.argmax(axis=1)]
    np.testing.assert_array_equal(runs.policy(seen, ~forbidden), np.where(forbidden, -np.inf, values).argmax(axis=1))
    np.testing.assert_array_equal(runs.policy(np.tile(seen, (30, 1))), np.tile(runs.policy(seen), 30))
    np.testing.assert_allclose(runs.action_values(seen[:1]), values[:1], rtol=1e-5)
    assert runs.policy(seen[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda runs, seen: runs.policy(np.where(seen == seen[1], np.nan, seen)),
            "finite numbers; that of row 1 holds",
        ),
        (lambda runs, seen: runs.q(seen[:1] * np.inf, [0]), "finite numbers; that of row 0 holds NaN or infinity"),
        (
            lambda runs, seen: runs.policy(seen, np.ones((1, 5))),
            r"booleans in the shape \(20, 5\), not float64 in \(1, 5\)",
        ),
        (lambda runs, seen: runs.policy(seen[:1], [[1, 2, 1, 1, 1]]), "A mask must be of booleans"),
        (lambda runs, seen: runs.policy(seen[:2], np.eye(2, 5) * [[1], [0]]), "in every row; that of row 1 does not"),
    ],
)
def test_wrong_questions_are_answered_in_one_sentence(small_run, seen, call, says):
    with pytest.raises(UserError, match=says):
        call(Runs(small_run), seen)


def test_what_was_selected_is_the_default(copied_run, seen):
    runs = Runs(copied_run)
    last = runs.action_values(seen)
    np.testing.assert_array_equal(last, runs.action_values(seen, member=0, step=40))
    write_json(copied_run / "selection.json", {"run": str(copied_run), "member": 2, "step": 20})
    assert selected(copied_run) == (2, 20)
    assert runs.place() == (2, 20)
    chosen = runs.action_values(seen)
    assert (chosen != last).any()
    np.testing.assert_array_equal(chosen, runs.action_values(seen, member=2, step=20))
    assert runs.place(member=1) == (1, 40)  # nothing was selected of that one
    assert runs.place(step=40) == (2, 40)
    each = [{"member": "dqn", "step": 40}, {"member": "dqn", "step": None}, {"member": "dqn", "step": 20}]
    write_json(copied_run / "selection.json", {"rule": "td-error", "members": each})  # a step for every member
    assert [selected(copied_run, member) for member in (None, 1, 2)] == [None, None, (2, 20)]
    assert [runs.place(member) for member in (None, 1, 2)] == [(0, 40), (1, 40), (2, 20)]
    write_json(copied_run / "selection.json", {"rule": "td-error", "members": each[2:]})
    assert selected(copied_run) == (0, 20)
    for odd in ({"member": "first", "step": 20}, {"members": [3]}, {"member": True, "step": 20}):
        write_json(copied_run / "selection.json", odd)
        with pytest.raises(UserError, match="member and step must be whole numbers; select again"):
            runs.policy(seen)


def test_a_run_without_an_update_has_no_policy(copied_run, seen):
    for step in (20, 40):
        Runs(copied_run).folder.checkpoints.path(step).unlink()
    with pytest.raises(UserError, match="has no policy: not a single update was made; train it first"):
        Runs(copied_run).policy(seen)
    assert Runs(copied_run).policy(seen, step=0).shape == (20,)  # the initial weights, asked for by their step
