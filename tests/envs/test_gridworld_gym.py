from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from dr3.envs import make_world
from dr3.envs.gridworld import gridworld
from dr3.errors import UserError

pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env

from dr3.envs.gridworld_gym import GridworldEnv

WORLD = gridworld("grid16smoothobs")


@pytest.mark.parametrize("options", [{}, {"lava": 0.1}, {"matrix_only_noise": True}])
def test_it_keeps_the_gymnasium_contract(options):
    check_env(GridworldEnv(gridworld("grid16smoothobs", **options)), skip_render_check=True)


def test_an_episode_starts_at_the_start_and_is_cut_at_the_horizon():
    env = GridworldEnv(WORLD)
    observation, info = env.reset(seed=0)
    assert info["state"] == 136
    np.testing.assert_array_equal(observation, WORLD.observations[136])
    state, generator = 136, np.random.default_rng(1)
    for step in range(50):
        observation, reward, terminated, truncated, info = env.step(generator.integers(5))
        assert reward == WORLD.rewards[state]  # paid for the state that was left
        assert not terminated
        assert truncated == (step == 49)
        state = info["state"]
        np.testing.assert_array_equal(observation, WORLD.observations[state])


@pytest.mark.parametrize("word", ["grid16smoothobs", "grid16smoothobs:lava=0.1"])
def test_it_is_made_by_its_word(word):
    made = make_world(word)
    first, info = made.reset(seed=0)
    assert isinstance(made.unwrapped, GridworldEnv)
    assert made.unwrapped.world.word == word
    np.testing.assert_array_equal(first, made.unwrapped.world.observations[info["state"]])
    with pytest.raises(UserError, match=f"{word} cannot be drawn"):
        make_world(word, render_mode="rgb_array")


def test_a_wrong_action_is_refused():
    env = GridworldEnv(WORLD)
    env.reset(seed=0)
    with pytest.raises(UserError, match="0 to 4"):
        env.step(5)


def test_without_gymnasium_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "dr3.envs.gridworld_gym")
    with pytest.raises(UserError, match=r"dr3\[envs\]"):
        importlib.import_module("dr3.envs.gridworld_gym")
