"""That it learns what can be known exactly: fixed seeds, wide margins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dr3.data import load
from dr3.envs import behavior_policy, expected_return, gridworld, policy_values
from dr3.methods import DQN, SARSA, Supervised
from dr3.training import train

DISCOUNT = 0.95
SETTINGS: Any = {"discount": DISCOUNT, "hidden": (64,), "learning_rate": 3e-3, "batch_size": 64}


@pytest.fixture(scope="module")
def world():
    return gridworld("grid16smoothobs")


@pytest.fixture(scope="module")
def data():
    return load("grid16smoothobs:size=2000", discount=DISCOUNT)


def test_q_learning_finds_a_policy_far_better_than_chance(world, data, tmp_path):
    """The best return is 41."""
    at_random = behavior_policy(world, "random", discount=DISCOUNT)
    chance = expected_return(world.transitions, world.rewards, at_random, world.start, world.horizon)
    assert chance == pytest.approx(4.25, abs=0.01)
    method = DQN(target_period=20, **SETTINGS)
    runs = train(data, method, steps=2000, metrics_every=2000, evaluate_every=1000, out=tmp_path, progress=False)
    assert runs.evaluations["evaluation/return"][0, 1:].min() > 3 * chance


def test_sarsa_finds_the_value_of_the_policy_that_logged(world, data, tmp_path):
    """Q^π of the mixed policy, which goes on past the time limit as SARSA does, at the logged pairs."""
    mixed = behavior_policy(world, "mixed", discount=DISCOUNT)
    exact = policy_values(world.transitions, world.rewards, mixed, DISCOUNT)
    states = (data.observations[:, None] == world.observations).all(axis=-1).argmax(axis=1)
    method = SARSA(target_period=20, **SETTINGS)
    runs = train(data, method, steps=2000, metrics_every=1000, env=None, out=tmp_path, progress=False)
    mean = runs.metrics["q/data_mean"][0]
    assert abs(mean[0]) < 1
    assert mean[-1] == pytest.approx(exact[states, data.actions].mean(), rel=0.1)


def test_regression_finds_the_mean_return(data, tmp_path):
    runs = train(data, Supervised(**SETTINGS), steps=1000, metrics_every=500, env=None, out=tmp_path, progress=False)
    assert runs.metrics["q/data_mean"][0, -1] == pytest.approx(np.mean(data.returns), rel=0.1)
    assert runs.metrics["td/error"][0, -1] < 0.2 * np.mean(data.returns**2)
