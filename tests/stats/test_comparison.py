from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import mannwhitneyu

from dr3.errors import UserError
from dr3.stats import Improvement, Interval, improvement, improvement_by_task, probability_of_improvement

NAN = np.nan
# Few distinct values, so that ties are common.
runs = arrays(np.float64, st.tuples(st.integers(1, 5), st.just(3)), elements=st.integers(-3, 3).map(float))


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def test_by_hand() -> None:
    # Task 0: 1 beats nothing, ties 1; 3 beats both: (0.5 + 0 + 1 + 1) / 4. Task 1: always better.
    first, second = [[1, 9], [3, 9]], [[1, 0], [2, 0]]
    np.testing.assert_array_equal(improvement_by_task(first, second), [2.5 / 4, 1.0])
    assert probability_of_improvement(first, second) == (2.5 / 4 + 1.0) / 2


def test_missing_runs_count_neither_way() -> None:
    first = [[1, 9], [3, NAN], [NAN, 9]]
    second = [[1, 0], [2, 10], [NAN, NAN]]
    np.testing.assert_array_equal(improvement_by_task(first, second, missing="ignore"), [2.5 / 4, 0.5])
    result = improvement(first, second, generator(), replicates=200, missing="ignore")
    assert result.per_task == (2.5 / 4, 0.5)
    assert 0.0 <= result.probability.lower <= result.probability.estimate <= result.probability.upper <= 1.0
    with pytest.raises(UserError, match="missing"):
        improvement(first, second, generator())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([[2, 2]], [[1, 1]]),
        ([[2, 2], [3, 3]], [[1, 1]]),
        ([[2, 2], [3, NAN]], [[1, 1], [0, 0]]),
    ],
)
def test_a_task_with_a_single_run_on_either_side_leaves_no_interval_and_no_verdict(
    first: list[list[float]], second: list[list[float]]
) -> None:
    result = improvement(first, second, generator(), replicates=50, missing="ignore")
    assert result.probability.estimate == 1.0
    assert np.isnan([result.probability.lower, result.probability.upper]).all()
    assert not result.significant
    assert not result.meaningful


def test_it_is_the_mann_whitney_statistic() -> None:
    rng = generator()
    x, y = rng.integers(0, 6, size=(7, 4)).astype(float), rng.integers(0, 6, size=(5, 4)).astype(float)
    expected = [mannwhitneyu(x[:, k], y[:, k]).statistic / 35 for k in range(4)]
    np.testing.assert_allclose(improvement_by_task(x, y), expected)


def test_the_bootstrap_agrees_with_resampling_in_a_plain_loop() -> None:
    rng = generator()
    x, y = rng.normal(0.5, 1, size=(4, 3)), rng.normal(0, 1, size=(3, 3))
    plain = []
    for _ in range(4_000):
        a = np.stack([rng.choice(x[:, k], 4) for k in range(3)], axis=1)
        b = np.stack([rng.choice(y[:, k], 3) for k in range(3)], axis=1)
        plain.append(np.mean([np.mean(a[:, None, k] > b[None, :, k]) for k in range(3)]))
    ours = improvement(x, y, generator(), replicates=20_000).probability
    lower, upper = np.quantile(plain, [0.025, 0.975])
    assert ours.lower == pytest.approx(lower, abs=0.04)
    assert ours.upper == pytest.approx(upper, abs=0.04)


def test_paired_draws_are_the_same_on_both_sides() -> None:
    # Paired, each side holds the same runs, so wins and losses cancel; apart, one side can be all 0 and one all 10.
    scores = np.array([[0.0], [10.0]])
    paired = improvement(scores, scores, generator(), paired=True, replicates=500).probability
    assert (paired.lower, paired.estimate, paired.upper) == (0.5, 0.5, 0.5)
    apart = improvement(scores, scores, generator(), replicates=500).probability
    assert (apart.lower, apart.upper) == (0.0, 1.0)


def test_verdicts_are_the_papers() -> None:
    # Appendix A.8: AntMaze 0.83 (0.7, 0.96) and Kitchen 0.8 (0.6, 1.0) are significant and meaningful.
    assert Improvement(Interval(0.83, 0.7, 0.96), ()).significant
    assert Improvement(Interval(0.83, 0.7, 0.96), ()).meaningful
    assert not Improvement(Interval(0.6, 0.5, 0.7), ()).significant
    assert not Improvement(Interval(0.6, 0.55, 0.75), ()).meaningful


@settings(max_examples=30, deadline=None)
@given(runs, runs)
def test_the_two_directions_add_to_one(x: np.ndarray, y: np.ndarray) -> None:
    forth, back = probability_of_improvement(x, y), probability_of_improvement(y, x)
    assert 0.0 <= forth <= 1.0
    assert forth + back == pytest.approx(1.0)
    assert probability_of_improvement(x, x) == pytest.approx(0.5)


@settings(max_examples=30, deadline=None)
@given(runs, runs, st.randoms(use_true_random=False))
def test_only_the_order_within_a_task_matters(x: np.ndarray, y: np.ndarray, random) -> None:
    rng = np.random.default_rng(random.randrange(1000))
    expected = probability_of_improvement(x, y)
    scale = np.array([0.5, 2.0, 8.0])
    assert probability_of_improvement(scale * x**3 + 4.0, scale * y**3 + 4.0) == pytest.approx(expected)
    assert probability_of_improvement(rng.permuted(x, axis=0), rng.permuted(y, axis=0)) == pytest.approx(expected)
    assert probability_of_improvement(x + 1.0, y) >= expected - 1e-12
