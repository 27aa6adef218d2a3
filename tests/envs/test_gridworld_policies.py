from __future__ import annotations

import numpy as np
import pytest

from dr3.envs.gridworld import gridworld
from dr3.envs.gridworld_policies import behavior_policy, mixed_policy, optimal_policy
from dr3.envs.tabular import expected_return
from dr3.errors import UserError

WORLD = gridworld("grid16smoothobs")


def test_mixed_puts_seven_tenths_on_the_optimal_action():
    mixed, optimal = mixed_policy(WORLD), optimal_policy(WORLD)
    np.testing.assert_allclose(np.sort(mixed, axis=1), np.tile([0.075, 0.075, 0.075, 0.075, 0.7], (256, 1)))
    np.testing.assert_array_equal(mixed.argmax(axis=1), optimal.argmax(axis=1))


def test_ties_go_to_the_first_action():
    optimal = optimal_policy(WORLD)
    assert optimal[0].argmax() == 0  # at the goal, staying is as good as bumping into the border
    assert optimal[4].argmax() == 0  # in a wall no action does anything


def test_better_behaviour_returns_more():
    def value(behavior):
        policy = behavior_policy(WORLD, behavior)
        return expected_return(WORLD.transitions, WORLD.rewards, policy, WORLD.start, WORLD.horizon)

    assert value("random") < value("mixed") < value("optimal")


def test_an_unknown_behaviour_is_refused():
    with pytest.raises(UserError, match="mixed, random, optimal"):
        behavior_policy(WORLD, "expert")
