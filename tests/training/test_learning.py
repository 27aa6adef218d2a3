"""That it learns: fixed seeds, wide margins."""

from __future__ import annotations

import pytest

from dr3.collect import load
from dr3.envs import behavior_policy, expected_return, gridworld
from dr3.methods import DQN, SARSA, Supervised
from dr3.training import train


@pytest.fixture(scope="module")
def data():
    return load("grid16smoothobs:size=2000", discount=0.95)


def test_q_learning_finds_a_policy_far_better_than_chance(data, tmp_path):
    """The best return is 41, that of random actions 4.25; the mixed policy that logged the data lies between."""
    world = gridworld("grid16smoothobs")

    def exact(policy):
        return expected_return(world.transitions, world.rewards, policy, world.start, world.horizon)

    random, logged = (exact(behavior_policy(world, name, discount=0.95)) for name in ("random", "mixed"))
    assert random == pytest.approx(4.25, abs=0.01)
    method = DQN(discount=0.95, hidden=(64, 64), learning_rate=1e-3, batch_size=64)
    runs = train(data, method, steps=4000, metrics_every=4000, evaluate_every=1000, out=tmp_path, progress=False)
    returns = runs.evaluations["evaluation/return"][0]
    assert returns[-2:].max() > max(20, logged)


@pytest.mark.parametrize("cls", [Supervised, SARSA])
def test_values_of_the_data_are_found(cls, data, tmp_path):
    """Regression to returns comes to their mean; SARSA, which goes on past time-outs, at least to half of the way."""
    method = cls(discount=0.95, hidden=(64, 64), learning_rate=1e-3, batch_size=64)
    runs = train(data, method, steps=3000, metrics_every=1000, env=None, out=tmp_path, progress=False)
    mean = runs.metrics["q/data_mean"][0]
    print(mean, data.returns.mean())
    assert abs(mean[0]) < 1
    assert mean[-1] == pytest.approx(data.returns.mean(), rel=0.1)
