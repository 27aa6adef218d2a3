from __future__ import annotations

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.stats import Interval, bootstrap, difference, interval, intervals, iqm, mean, median

NAN = np.nan


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_runs_never_leave_their_task() -> None:
    seen = []

    def record(scores, *, missing):
        seen.append(scores)
        return scores.mean(axis=(-2, -1))

    bootstrap([[0, 10, 20], [1, 11, 21]], record, generator(), replicates=200)
    replicates = np.concatenate(seen)
    assert replicates.shape == (200, 2, 3)
    for task, values in enumerate([{0, 1}, {10, 11}, {20, 21}]):
        assert set(np.unique(replicates[:, :, task])) == values


def test_a_missing_run_stays_missing_and_the_others_are_drawn_evenly() -> None:
    seen = []

    def record(scores, *, missing):
        seen.append(scores)
        return scores[:, 0, 0]

    bootstrap([[NAN, 1], [5, 2], [6, 3]], record, generator(), replicates=4_000, missing="ignore")
    replicates = np.concatenate(seen)
    np.testing.assert_array_equal(np.isnan(replicates).sum(axis=(1, 2)), 1)
    first = replicates[:, :, 0]
    first = first[~np.isnan(first)]
    assert first.size == 8_000
    assert set(first) == {5, 6}
    assert np.mean(first == 5) == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(8_000))


def test_the_spread_of_the_mean_is_the_known_one() -> None:
    # Resampling n runs of a task: the mean has variance (population variance) / n; two tasks average independently.
    scores = np.array([[0.0, 0.0], [1.0, 4.0]])
    replicates = bootstrap(scores, mean, generator(), replicates=40_000)
    variance = (0.25 / 2 + 4.0 / 2) / 4
    assert replicates.var() == pytest.approx(variance, rel=0.05)
    assert replicates.mean() == pytest.approx(1.25, abs=0.02)


def test_one_run_per_task_has_no_limits() -> None:
    result = interval([[3, 1, 2]], median, generator(), replicates=50)
    assert result.estimate == 2
    assert np.isnan([result.lower, result.upper]).all()
    assert not result.has_limits


def test_one_task_with_a_single_run_among_others_leaves_no_limits() -> None:
    result = interval([[1, 2], [3, NAN]], mean, generator(), replicates=50, missing="ignore")
    assert result.estimate == 2
    assert not result.has_limits


@pytest.mark.parametrize(("first", "second"), [([[5]], [[1], [3]]), ([[4], [6]], [[2]]), ([[5]], [[2]])])
def test_a_difference_to_or_from_a_single_run_has_no_limits(
    first: list[list[float]], second: list[list[float]]
) -> None:
    result = difference(first, second, mean, generator(), replicates=50)
    assert result.estimate == 3
    assert not result.has_limits


def test_an_interval_is_printed_with_a_dash_for_limits_that_there_are_not() -> None:
    assert str(Interval(1.25, 0.5, 2.0)) == "1.2 (0.5, 2.0)"
    assert str(Interval(1.25, NAN, NAN)) == "1.2 (–)"
    assert Interval(1.25, NAN, NAN).text("{:+.2f}".format) == "+1.25 (–)"


def test_same_generator_same_interval_and_a_wider_level_is_wider() -> None:
    scores = generator(5).normal(size=(5, 7))
    narrow = interval(scores, iqm, generator(), level=0.5, replicates=2_000)
    wide = interval(scores, iqm, generator(), level=0.95, replicates=2_000)
    assert wide == interval(scores, iqm, generator(), level=0.95, replicates=2_000)
    assert wide.lower < narrow.lower < narrow.estimate < narrow.upper < wide.upper


def test_several_algorithms_and_statistics_at_once() -> None:
    table = intervals(
        {"a": [[1, 2]], "b": [[3, 5], [3, 5]]}, {"mean": mean, "median": median}, generator(), replicates=10
    )
    assert table["a"]["mean"].estimate == 1.5
    assert table["b"]["median"].upper == 4.0


def test_a_difference_of_equal_runs_is_exactly_zero_when_paired() -> None:
    scores = generator(1).normal(size=(5, 4))
    together = difference(scores + 2.0, scores, iqm, generator(), paired=True, replicates=500)
    assert together.lower == pytest.approx(2.0)
    assert together.upper == pytest.approx(2.0)
    apart = difference(scores + 2.0, scores, iqm, generator(), replicates=500)
    assert apart.estimate == pytest.approx(2.0)
    assert apart.upper - apart.lower > 0.1


def test_different_numbers_of_runs_can_be_compared_but_not_paired() -> None:
    a, b = generator(1).normal(size=(5, 4)), generator(2).normal(size=(3, 4))
    assert difference(a, b, mean, generator(), replicates=100).estimate == pytest.approx(a.mean() - b.mean())
    with pytest.raises(UserError, match="paired"):
        difference(a, b, mean, generator(), paired=True)
    holed = a.copy()
    holed[0, 0] = NAN
    with pytest.raises(UserError, match="paired"):
        difference(a, holed, mean, generator(), paired=True, missing="ignore")
    with pytest.raises(UserError, match="4 and 3 tasks"):
        difference(a, b[:, :3], mean, generator())


def test_what_cannot_be_resampled_is_refused() -> None:
    with pytest.raises(UserError, match="missing"):
        bootstrap([[1, NAN], [1, 2]], mean, generator())
    with pytest.raises(UserError, match="one \\(runs, tasks\\) matrix"):
        bootstrap(np.zeros((2, 2, 2)), mean, generator())
    with pytest.raises(UserError, match="replicates"):
        bootstrap([[1, 2]], mean, generator(), replicates=0)
    with pytest.raises(UserError, match="level"):
        interval([[1, 2]], mean, generator(), level=95, replicates=10)
