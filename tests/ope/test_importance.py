"""Importance sampling and doubly robust: by hand, and beside a public library."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.ope import (
    Episodes,
    bootstrap_interval,
    doubly_robust,
    effective_sample_size,
    mean_interval,
    per_decision,
    weighted,
)

# As `python benchmarks/ope_reference.py` printed them: SCOPE-RL 0.2.1.
PDIS, SNPDIS, DR = 1.628000255772006, 1.7359591995623753, 1.938888050685426

# Two episodes, of two steps and of one: ratios 2, 1/2 and 1/2; rewards 1, 4 and 2; γ = 1/2.
TWO = Episodes.of([1.0, 4.0, 2.0], [2.0, 0.5, 0.5], [0, 0, 1])


def test_weights_are_products_and_stay_behind_an_episodes_end():
    assert TWO.weights.tolist() == [[2.0, 1.0], [0.5, 0.5]]
    assert TWO.rewards.tolist() == [[1.0, 4.0], [2.0, 0.0]]


def test_by_hand():
    # (2·1 + ½·1·4, ½·2) = (4, 1); their mean is 2.5.
    assert per_decision(TWO, 0.5).estimate == pytest.approx(2.5)
    # Step 0: (2·1 + ½·2) / 2.5; step 1: ½ · (1·4 + ½·0) / 1.5.
    assert weighted(TWO, 0.5).estimate == pytest.approx(3 / 2.5 + 0.5 * 4 / 1.5)
    # Whole episodes weigh 1 and ½: (3/2)² / (1 + ¼).
    assert effective_sample_size(TWO) == pytest.approx(2.25 / 1.25)


def test_doubly_robust_by_hand():
    q, v, v_next, terminals = [1.0, 2.0, 3.0], [2.0, 1.0, 1.0], [1.0, 8.0, 2.0], [False, True, False]
    # Episode 1: 2 + 2·(1 + ½·1 - 1) + ½·1·(4 + 0 - 2) = 4. Episode 2, cut: 1 + ½·(2 + ½·2 - 3) = 1.
    assert doubly_robust(TWO, 0.5, q, v, v_next, terminals).estimate == pytest.approx(2.5)


def test_doubly_robust_without_a_critic_is_per_decision():
    nothing = np.zeros(3)
    assert doubly_robust(TWO, 0.5, nothing, nothing, nothing, nothing).estimate == per_decision(TWO, 0.5).estimate


def test_the_logged_policy_weighs_every_episode_alike():
    same = Episodes.of([1.0, 4.0, 2.0], np.ones(3), [0, 0, 1])
    assert effective_sample_size(same) == 2
    assert per_decision(same, 0.5).estimate == weighted(same, 0.5).estimate == pytest.approx((3 + 2) / 2)


def test_a_policy_that_would_do_none_of_it_has_no_weight():
    never = Episodes.of([1.0, 2.0], [0.0, 0.0], [0, 1])
    assert effective_sample_size(never) == 0
    assert weighted(never, 0.5).estimate == 0


def test_the_public_library_finds_the_same():
    reference = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "ope_reference.py"))
    given, steps, discount = reference["fixed_input"](), reference["STEPS"], reference["DISCOUNT"]
    rows = np.arange(len(given["actions"]))
    ratios = given["policy"][rows, given["actions"]] / given["propensities"]
    episodes = Episodes.of(given["rewards"], ratios, rows // steps)
    v = (given["q"] * given["policy"]).sum(axis=1)
    # It knows nothing of what comes after an episode's last step.
    ends = rows % steps == steps - 1
    dr = doubly_robust(episodes, discount, given["q"][rows, given["actions"]], v, np.append(v[1:], 0), ends)
    assert per_decision(episodes, discount).estimate == pytest.approx(PDIS, rel=1e-9)
    assert weighted(episodes, discount).estimate == pytest.approx(SNPDIS, rel=1e-9)
    assert dr.estimate == pytest.approx(DR, rel=1e-9)


def test_students_interval():
    found = mean_interval([1.0, 2.0, 3.0])
    assert (found.estimate, found.upper) == (2.0, pytest.approx(2 + 4.30265 / 3**0.5, rel=1e-5))
    assert not mean_interval([1.0, 2.0]).has_limits
    with pytest.raises(UserError, match="one number for each"):
        mean_interval([])


def test_an_interval_from_bootstraps_is_wider_with_few_of_them():
    few, many = (bootstrap_interval(0.0, np.tile([-1.0, 1.0], count), 1000) for count in (2, 200))
    assert few.upper > 1.5 * many.upper
    assert not bootstrap_interval(float("nan"), [1.0, 2.0], 10).has_limits
