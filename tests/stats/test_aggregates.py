from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dr3.errors import UserError
from dr3.stats import iqm, mean, median, optimality_gap, task_means

STATISTICS = [iqm, median, mean]
NAN = np.nan
scores = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(-1e3, 1e3))


def test_iqm_is_the_mean_of_the_middle_half() -> None:
    # Eight scores: two are cut at each end, 3, 4, 5, 6 stay.
    assert iqm([[8, 1], [2, 7], [3, 6], [4, 5]]) == 4.5
    # Five scores: floor(5 / 4) = 1 is cut at each end.
    assert iqm([[100], [1], [2], [3], [-100]]) == 2.0


def test_median_and_mean_are_over_tasks_of_means_over_runs() -> None:
    matrix = [[0, 10, 100], [2, 20, 300]]  # task means 1, 15, 200
    assert median(matrix) == 15.0
    assert mean(matrix) == 72.0
    np.testing.assert_array_equal(task_means(matrix), [1, 15, 200])


def test_optimality_gap_caps_what_is_above_the_threshold() -> None:
    assert optimality_gap([[50, 250], [90, 100]]) == 100 - (50 + 90 + 100 + 100) / 4
    assert optimality_gap([[0.5, 2.0]], threshold=1.0) == 0.25


def test_missing_runs_by_hand() -> None:
    ragged = np.array([[1, 10], [2, NAN], [3, NAN], [NAN, NAN]])
    assert iqm(ragged, missing="ignore") == 2.5  # of 1, 2, 3, 10 one is cut at each end
    assert median(ragged, missing="ignore") == 6.0  # task means 2 and 10
    assert mean(ragged, missing="ignore") == 6.0
    assert optimality_gap(ragged, threshold=5.0, missing="ignore") == 5 - (2 + 5) / 2


@pytest.mark.parametrize("statistic", [*STATISTICS, optimality_gap])
def test_a_stack_of_matrices_is_one_call(statistic) -> None:
    stack = np.random.default_rng(0).normal(size=(3, 2, 4, 5))
    stack[1, 0, 2, 3] = NAN
    together = statistic(stack, missing="ignore")
    assert together.shape == (3, 2)
    for index in np.ndindex(3, 2):
        assert together[index] == pytest.approx(float(statistic(stack[index], missing="ignore")))


@pytest.mark.parametrize("statistic", [*STATISTICS, optimality_gap, task_means])
def test_nothing_is_dropped_silently(statistic) -> None:
    with pytest.raises(UserError, match="1 of 4 scores are missing"):
        statistic([[1, 2], [NAN, 3]])
    with pytest.raises(UserError, match="task number 1 has no run"):
        statistic([[1, NAN], [2, NAN]], missing="ignore")
    with pytest.raises(UserError, match="infinite"):
        statistic([[1, np.inf]], missing="ignore")
    with pytest.raises(UserError, match="runs x tasks"):
        statistic([1, 2, 3])
    with pytest.raises(UserError, match="missing must be"):
        statistic([[1, 2]], missing="drop")


@settings(max_examples=30, deadline=None)
@given(scores)
def test_bounds(matrix: np.ndarray) -> None:
    slack = 1e-9 * (1 + np.abs(matrix).max())
    for statistic in STATISTICS:
        assert matrix.min() - slack <= statistic(matrix) <= matrix.max() + slack
    assert -slack <= optimality_gap(matrix, threshold=float(matrix.max())) <= np.ptp(matrix) + slack


@settings(max_examples=30, deadline=None)
@given(scores, st.data())
def test_raising_a_score_never_lowers_an_aggregate(matrix: np.ndarray, data: st.DataObject) -> None:
    raised = matrix + data.draw(arrays(np.float64, matrix.shape, elements=st.floats(0, 10)))
    for statistic in STATISTICS:
        assert statistic(raised) >= statistic(matrix) - 1e-9
    assert optimality_gap(raised) <= optimality_gap(matrix) + 1e-9


@settings(max_examples=30, deadline=None)
@given(scores, st.randoms(use_true_random=False))
def test_the_order_of_runs_and_tasks_does_not_matter(matrix: np.ndarray, random) -> None:
    rng = np.random.default_rng(random.randrange(1000))
    shuffled = rng.permuted(matrix, axis=0)[:, rng.permutation(matrix.shape[1])]
    for statistic in [*STATISTICS, optimality_gap]:
        assert statistic(shuffled) == pytest.approx(float(statistic(matrix)), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(scores, st.floats(0.01, 100), st.floats(-100, 100))
def test_scaling_and_shifting(matrix: np.ndarray, scale: float, shift: float) -> None:
    for statistic in STATISTICS:
        expected = scale * float(statistic(matrix)) + shift
        assert statistic(scale * matrix + shift) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    gap = optimality_gap(scale * matrix + shift, threshold=scale * 3.0 + shift)
    assert gap == pytest.approx(scale * float(optimality_gap(matrix, threshold=3.0)), rel=1e-9, abs=1e-6)
