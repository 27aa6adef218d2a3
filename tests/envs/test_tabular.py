from __future__ import annotations

import numpy as np
import pytest

from dr3.envs.gridworld import gridworld
from dr3.envs.tabular import expected_return, greedy_policy, optimal_values, policy_values
from dr3.errors import UserError

# Two states. Action 0 stays, action 1 goes to the other; being in state 1 pays 1.
P = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
R = np.array([0.0, 1.0])
UNIFORM = np.full((2, 2), 0.5)


def test_optimal_values_by_hand():
    # V(1) = 1 / (1 - 0.5) = 2 and V(0) = 0.5 V(1) = 1.
    np.testing.assert_allclose(optimal_values(P, R, 0.5), [[0.5, 1.0], [2.0, 1.5]], atol=1e-12)


def test_values_of_the_uniform_policy_by_hand():
    # V(0) = m, V(1) = 1 + m with m = 0.5 (V(0) + V(1)) / 2, so m = 0.5.
    np.testing.assert_allclose(policy_values(P, R, UNIFORM, 0.5), [[0.25, 0.75], [1.75, 1.25]], atol=1e-12)


def test_a_reward_may_belong_to_the_action_and_an_episode_may_end():
    ends = np.zeros((1, 2, 1))
    ends[0, 0, 0] = 1.0  # action 0 goes on and pays 1, action 1 ends and pays 5
    np.testing.assert_allclose(optimal_values(ends, np.array([[1.0, 5.0]]), 0.5), [[3.5, 5.0]])


def test_expected_return_by_hand():
    go_and_stay = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert expected_return(P, R, go_and_stay, start=0, horizon=4) == pytest.approx(3.0)
    assert expected_return(P, R, go_and_stay, start=0, horizon=4, discount=0.5) == pytest.approx(0.875)
    assert expected_return(P, R, UNIFORM, start=0, horizon=4) == pytest.approx(1.5)
    assert expected_return(P, R, UNIFORM, start=1, horizon=0) == 0


def test_greedy_takes_the_first_of_equal_actions_whatever_the_rounding():
    values = np.array([[0.3, 0.1 + 0.2, 0.0], [0.0, 1.0, 2.0]])
    np.testing.assert_array_equal(greedy_policy(values), [[1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("name", ["grid16smoothobs", "grid16smoothsparse"])
def test_optimal_values_of_a_gridworld_solve_the_bellman_equation(name):
    world = gridworld(name)
    values = optimal_values(world.transitions, world.rewards, 0.95)
    backed_up = world.rewards[:, None] + 0.95 * world.transitions @ values.max(axis=1)
    np.testing.assert_allclose(values, backed_up, atol=1e-12)

    best = greedy_policy(values)
    np.testing.assert_allclose(policy_values(world.transitions, world.rewards, best, 0.95), values, atol=1e-12)
    limit = expected_return(world.transitions, world.rewards, best, world.start, 800, discount=0.95)
    assert limit == pytest.approx(values[world.start].max())


def test_exact_return_agrees_with_acting():
    world, generator = gridworld("grid16smoothobs"), np.random.default_rng(0)
    policy = greedy_policy(optimal_values(world.transitions, world.rewards, 0.95))
    actions, totals = policy.argmax(axis=1), []
    for _ in range(300):
        state, total = world.start, 0.0
        for _ in range(world.horizon):
            total += world.rewards[state]
            state = world.step(state, int(actions[state]), generator)
        totals.append(total)
    exact = expected_return(world.transitions, world.rewards, policy, world.start, world.horizon)
    assert abs(np.mean(totals) - exact) < 4 * np.std(totals) / np.sqrt(300)


@pytest.mark.parametrize("discount", [1.0, -0.1])
def test_a_discount_without_a_limit_is_refused(discount):
    with pytest.raises(UserError, match="discount"):
        optimal_values(P, R, discount)
