from __future__ import annotations

import numpy as np

from dr3.stats import CheckpointResult, ScoreTable


def table(*steps: int) -> ScoreTable:
    """One run whose score at each step is that step, and 1000 at step 0."""
    return ScoreTable([CheckpointResult("A", "x", 0, step, (float(step or 1000),)) for step in steps])


def test_the_average_over_training_leaves_the_untrained_policy_out_and_no_other_checkpoint() -> None:
    # What 100 updates with 20 evaluations write: 0, 5, 10, ..., 100. Without the first: (5 + 100) / 2.
    np.testing.assert_array_equal(table(*range(0, 101, 5)).average(20).scores["A"], [[52.5]])


def test_evenly_spaced_checkpoints_are_counted_from_the_first_trained_policy() -> None:
    np.testing.assert_array_equal(table(0, 10, 20, 30, 40).average(2).scores["A"], [[(20 + 40) / 2]])


def test_where_only_the_untrained_policy_was_tried_it_is_the_average() -> None:
    np.testing.assert_array_equal(table(0).average().scores["A"], [[1000]])


def test_a_curve_over_training_begins_with_the_untrained_policy() -> None:
    np.testing.assert_array_equal(table(0, 10).over_training()["A"], [[[1000, 10]]])
