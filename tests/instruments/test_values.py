from __future__ import annotations

import math

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.instruments import ReturnBounds, dead_features, dormant_features, return_bounds, td_error, value_statistics


@pytest.mark.parametrize(
    ("rewards", "ends", "low", "high"),
    [
        ([0, 1], True, 0, 10),
        ([-1, 1], True, -10, 10),
        ([-1, -0.5], True, -10, -0.5),  # an episode that ends at once costs only one step
        ([-1, -0.5], False, -10, -5),
        ([0.5, 1], True, 0.5, 10),
        ([0.5, 1], False, 5, 10),
    ],
)
def test_bounds_of_returns_without_a_horizon(rewards, ends, low, high):
    assert return_bounds(rewards, 0.9, ends=ends) == pytest.approx((low, high))


def test_bounds_of_returns_with_a_horizon():
    assert return_bounds([0, 1], 0.5, horizon=3) == pytest.approx((0, 1.75))
    assert return_bounds([0, 2], 1.0, horizon=4) == pytest.approx((0, 8))
    with pytest.raises(UserError, match="horizon"):
        return_bounds([0, 1], 1.0)


def test_a_discount_that_is_none_is_refused():
    with pytest.raises(UserError, match="The discount must be between 0 and 1, not 2"):
        return_bounds([0, 1], 2)


def test_statistics_count_what_no_policy_could_earn():
    bounds = ReturnBounds(0, 10)
    found = value_statistics([-0.4, 2, 10.4, 11, np.inf], bounds)
    assert found.outside == pytest.approx(0.4)  # the slack of 0.5 forgives two
    assert value_statistics([np.nan, 5], bounds).outside == 0.5
    assert value_statistics([1, 3], bounds)[:4] == (2, 1, 1, 3)


def test_td_error_by_hand():
    # 5 - (1 + 0.9 * 2) = 2.2 and, at a terminal, 3 - 1 = 2
    assert td_error([5, 3], [2.8, 1]) == pytest.approx((2.2**2 + 4) / 2)


def test_dead_and_dormant_features():
    phi = np.array([[0, 1, 0.0, 8], [0, 1, 0.1, 8], [0, 1, 0.0, 8]])
    assert dead_features(phi) == 0.25
    assert dead_features(phi, tolerance=0.1) == 0.5
    assert dormant_features(phi) == 0.5  # means 0, 1, 0.033, 8; 2.5 % of their mean is 0.056
    assert dormant_features(np.zeros((2, 3))) == 1.0
    assert not math.isnan(dead_features(np.zeros((2, 3))))
