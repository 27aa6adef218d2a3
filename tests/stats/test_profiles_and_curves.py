from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dr3.errors import UserError
from dr3.stats import (
    average_over_checkpoints,
    efficiency_curve,
    evenly_spaced,
    forward_fill,
    interval,
    iqm,
    performance_profile,
)

NAN = np.nan


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def test_profile_counts_scores_strictly_above() -> None:
    band = performance_profile([[1, 2], [3, 4]], [0, 1, 2.5, 4], generator(), replicates=300)
    np.testing.assert_array_equal(band.estimate, [1.0, 0.75, 0.5, 0.0])
    # Task 0 (runs 1, 3) and task 1 (runs 2, 4): each replicate has 0 to 4 scores above 2.5, never one above 4.
    np.testing.assert_array_equal(band.lower, [1.0, 0.5, 0.0, 0.0])
    np.testing.assert_array_equal(band.upper, [1.0, 1.0, 1.0, 0.0])


def test_profile_uses_the_runs_there_are() -> None:
    scores = [[1, 2], [3, NAN], [NAN, 2]]
    band = performance_profile(scores, [0, 2.5], generator(), replicates=50, missing="ignore")
    np.testing.assert_allclose(band.estimate, [1, 1 / 4])
    np.testing.assert_array_equal(band.upper, [1, 2 / 4])  # both draws of the first task are its 3
    with pytest.raises(UserError, match="missing"):
        performance_profile([[1, 2], [3, NAN]], [0], generator())
    with pytest.raises(UserError, match="increasing"):
        performance_profile([[1, 2]], [1, 0], generator())


def test_a_profile_of_single_runs_has_no_limits() -> None:
    band = performance_profile([[1, 2]], [0, 1.5], generator(), replicates=50)
    np.testing.assert_array_equal(band.estimate, [1, 0.5])
    assert np.isnan([band.lower, band.upper]).all()


@settings(max_examples=20, deadline=None)
@given(arrays(np.float64, (3, 4), elements=st.floats(-10, 10)))
def test_profiles_fall_and_stay_between_zero_and_one(scores: np.ndarray) -> None:
    band = performance_profile(scores, np.linspace(-11, 11, 9), generator(), replicates=20)
    for line in (band.estimate, band.lower, band.upper):
        assert np.all(np.diff(line) <= 1e-12)
        assert line[0] == 1.0
        assert line[-1] == 0.0
    np.testing.assert_allclose(band.estimate, [(scores > tau).mean() for tau in band.axis])


def test_twenty_of_a_hundred_iterations_are_every_fifth() -> None:
    np.testing.assert_array_equal(evenly_spaced(100, 20) + 1, np.arange(5, 101, 5))
    np.testing.assert_array_equal(evenly_spaced(5, 2), [1, 4])
    np.testing.assert_array_equal(evenly_spaced(3, 20), [0, 1, 2])
    np.testing.assert_array_equal(evenly_spaced(3, None), [0, 1, 2])
    with pytest.raises(UserError, match="at least 1"):
        evenly_spaced(3, 0)


def test_average_performance() -> None:
    cube = np.array([[[0, 2, 4, 6]], [[1, 1, 1, 5]]], dtype=float)  # two runs, one task, four checkpoints
    np.testing.assert_array_equal(average_over_checkpoints(cube), [[3], [2]])
    np.testing.assert_array_equal(average_over_checkpoints(cube, count=2), [[4], [3]])
    cube[0, 0, 0] = NAN
    cube[1] = NAN
    np.testing.assert_array_equal(average_over_checkpoints(cube, missing="ignore"), [[4], [NAN]])
    with pytest.raises(UserError, match="5 of 8 checkpoints"):
        average_over_checkpoints(cube)


def test_gaps_are_filled_with_what_came_last_before_them() -> None:
    curves = np.array([[1, 2, NAN, NAN], [NAN, 3, NAN, 4], [5, np.inf, NAN, 6]])
    np.testing.assert_array_equal(forward_fill(curves), [[1, 2, 2, 2], [NAN, 3, 3, 4], [5, 5, 5, 6]])
    np.testing.assert_array_equal(forward_fill(curves[0]), [1, 2, 2, 2])
    assert forward_fill(np.zeros((2, 0))).shape == (2, 0)


def test_a_curve_is_an_interval_at_each_checkpoint() -> None:
    cube = generator().normal(size=(4, 3, 5))
    band = efficiency_curve(cube, [1, 2, 3, 4, 5], generator(), replicates=200)
    rng = generator()
    for k in range(5):
        point = interval(cube[:, :, k], iqm, rng, replicates=200)
        assert (band.estimate[k], band.lower[k], band.upper[k]) == (point.estimate, point.lower, point.upper)
    with pytest.raises(UserError, match="5 checkpoints"):
        efficiency_curve(cube, [1, 2], generator())
    with pytest.raises(UserError, match="runs x tasks x checkpoints"):
        efficiency_curve(cube[0], [1, 2], generator())
