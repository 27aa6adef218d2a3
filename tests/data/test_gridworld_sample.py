from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dr3.data import sample_gridworld
from dr3.data.transitions import DiscreteActions
from dr3.envs.gridworld import gridworld
from dr3.envs.gridworld_policies import mixed_policy
from dr3.errors import UserError

WORLD = gridworld("grid16smoothobs")
DATA = sample_gridworld(WORLD, size=256, seed=0)


def states(observations):
    """Rows of observations are all different, so a state can be read back from them."""
    return np.square(observations[:, None] - WORLD.observations).sum(axis=2).argmin(axis=1)


def test_the_table_is_whole():
    assert len(DATA) == 256
    assert DATA.name == "grid16smoothobs-256"
    unusual = sample_gridworld(gridworld("grid16smoothobs", lava=0.1), size=60, behavior="random", seed=3)
    assert unusual.name == "grid16smoothobs-lava=0.1-60-random-seed3"
    assert DATA.world == "grid16smoothobs"
    assert DATA.action_space == DiscreteActions(5)
    assert not DATA.terminals.any()
    assert DATA.next_action_known.all()
    assert DATA.returns_discount == 0.95
    assert {field.name: len(getattr(DATA, field.name)) for field in dataclasses.fields(DATA)[:10]} == {
        field.name: 256 for field in dataclasses.fields(DATA)[:10]
    }


def test_episodes_start_at_the_start_and_time_out_at_the_horizon():
    np.testing.assert_array_equal(DATA.episodes, np.arange(256) // 50)
    np.testing.assert_array_equal(np.flatnonzero(DATA.timeouts), [49, 99, 149, 199, 249])
    assert (states(DATA.observations[::50]) == 136).all()


def test_rows_follow_each_other_within_an_episode_and_never_across():
    follows = np.all(DATA.next_observations[:-1] == DATA.observations[1:], axis=1)
    np.testing.assert_array_equal(follows, ~DATA.timeouts[:-1])
    within = ~DATA.timeouts[:-1]
    np.testing.assert_array_equal(DATA.next_actions[:-1][within], DATA.actions[1:][within])


def test_rewards_are_those_of_the_state_that_is_left():
    np.testing.assert_allclose(DATA.rewards, WORLD.rewards[states(DATA.observations)])


def test_next_behaviour_is_the_exact_policy_at_the_next_state():
    expected = mixed_policy(WORLD)[states(DATA.next_observations)]
    assert DATA.next_behavior is not None
    np.testing.assert_allclose(DATA.next_behavior, expected, rtol=1e-6)


def test_returns_by_hand():
    np.testing.assert_allclose(DATA.returns[49], DATA.rewards[49])
    np.testing.assert_allclose(DATA.returns[0], np.sum(0.95 ** np.arange(50) * DATA.rewards[:50]), rtol=1e-5)


def test_the_cut_episode_keeps_its_full_return():
    longer = sample_gridworld(WORLD, size=300, seed=0)
    np.testing.assert_array_equal(longer.returns[:256], DATA.returns)
    assert DATA.returns[250] > np.sum(0.95 ** np.arange(6) * DATA.rewards[250:])


@pytest.mark.parametrize(("behavior", "share"), [("mixed", 0.7), ("random", 0.2), ("optimal", 1.0)])
def test_the_optimal_action_is_taken_as_often_as_asked(behavior, share):
    data = sample_gridworld(WORLD, size=1000, behavior=behavior, seed=1)
    optimal = mixed_policy(WORLD).argmax(axis=1)
    for observations, actions in [(data.observations, data.actions), (data.next_observations, data.next_actions)]:
        frequency = np.mean(actions == optimal[states(observations)])
        assert abs(frequency - share) <= 4 * np.sqrt(share * (1 - share) / 1000)


def test_the_seed_decides_everything():
    assert sample_gridworld(WORLD, size=256, seed=0).fingerprint() == DATA.fingerprint()
    assert sample_gridworld(WORLD, size=256, seed=1).fingerprint() != DATA.fingerprint()


def test_sampling_obeys_the_noise_switch():
    quiet = gridworld("grid16smoothobs", matrix_only_noise=True)

    def obeyed(world):
        data = sample_gridworld(world, size=500, seed=0)
        intended = WORLD.successors[states(data.observations), data.actions.astype(int)]
        return intended == states(data.next_observations)

    assert obeyed(quiet).all()
    assert 0.9 < obeyed(WORLD).mean() < 1  # 1 - 0.05 × (share of draws that change anything)


def test_a_changed_world_is_recorded_with_its_options():
    assert sample_gridworld(gridworld("grid16smoothobs", lava=0.1), size=5).world == "grid16smoothobs:lava=0.1"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"size": 0}, "size"), ({"behavior": "expert"}, "expert"), ({"seed": -1}, "A seed is a whole number")],
)
def test_what_cannot_be_sampled_is_refused(arguments, words):
    with pytest.raises(UserError, match=words):
        sample_gridworld(WORLD, **arguments)
