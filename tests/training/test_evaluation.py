"""Where policies are tried: what the data say of their world, and what is kept of it."""

from __future__ import annotations

import numpy as np
import pytest

from dr3.data import ContinuousActions, DiscreteActions, load
from dr3.envs import expected_return, gridworld, policy_values
from dr3.errors import UserError
from dr3.methods import Spec
from dr3.runs import Runs
from dr3.training import train
from dr3.training.evaluation import Policy, evaluator_for
from dr3.training.train import NO_EVALUATION

WORD = "grid16smoothobs:lava=0.1"


@pytest.fixture
def lava(method, tmp_path):
    """Train a few steps on data from a world with lava."""
    data = load("grid16smoothobs:size=64:lava=0.1", discount=method.discount)

    def run(**options):
        return train(data, method, steps=20, evaluate_every=10, out=tmp_path / "run", **options)

    return run


def test_data_from_a_changed_world_are_evaluated_in_that_world(lava, method):
    runs, world = lava(progress=False), gridworld("grid16smoothobs", lava=0.1)
    assert runs.config.data.world == WORD
    assert runs.config.evaluation == {"kind": "exact gridworld", "world": WORD, "horizon": 50}
    for number, step in enumerate((0, 10, 20)):
        greedy = np.eye(5)[runs.policy(world.observations, step=step)]
        exact = expected_return(world.transitions, world.rewards, greedy, world.start, world.horizon)
        forever = policy_values(world.transitions, world.rewards, greedy, method.discount)[world.start]
        assert runs.evaluations["evaluation/return"][0, number] == exact
        assert runs.evaluations["evaluation/discounted_value"][0, number] == forever @ greedy[world.start]


@pytest.mark.parametrize(
    ("mine", "env", "says"),
    [
        (DiscreteActions(6), "grid16smoothobs", "integers from 0 to 5, those of the world .* integers from 0 to 4"),
        (DiscreteActions(18), "minatar/breakout", "integers from 0 to 17, .* integers from 0 to 2"),
        (DiscreteActions(9), "CartPole-v1", "integers from 0 to 8, .* integers from 0 to 1"),
        (ContinuousActions(1), "CartPole-v1", "single numbers, .* integers from 0 to 1"),
        (ContinuousActions(2), "Pendulum-v1", "vectors of 2 numbers, .* single numbers"),
        (DiscreteActions(2), "Pendulum-v1", "integers from 0 to 1, .* single numbers"),
    ],
)
def test_a_world_with_other_actions_is_refused(mine, env, says, method):
    shape = {"grid16smoothobs": (16,), "minatar/breakout": (10, 10, 4)}.get(env, ())
    with pytest.raises(UserError, match=f"The data's actions are {says}; name another env, or none"):
        evaluator_for(env)(Policy(method, None, Spec(shape, mine)), seed=0, step=0, discount=0.9)


def test_data_need_not_hold_every_action_of_the_world(method):
    policy = Policy(method, None, Spec((4,), DiscreteActions(3)))
    policy.check_actions(DiscreteActions(4))


def test_no_episodes_are_no_try():
    with pytest.raises(UserError, match="episodes must be at least 1, not 0"):
        evaluator_for("CartPole-v1", episodes=0)


def test_another_world_is_another_run(lava):
    lava(progress=False, env=gridworld("grid16smoothobs", lava=0.2))
    with pytest.raises(UserError, match=r"its evaluation\.world is 'grid16smoothobs:lava=0\.2' and the one asked for"):
        lava(progress=False, env=WORD)
    lava(progress=False, env="grid16smoothobs:lava=0.2")


def test_a_plain_gridworld_is_described_by_its_name_alone(small_run):
    config = Runs(small_run).config
    assert config.evaluation is not None
    assert config.data.world == config.evaluation["world"] == "grid16smoothobs"


def test_where_nothing_is_tried_it_is_said_once(run, lava, tmp_path, capsys):
    run(env="auto", out=tmp_path / "nowhere", steps=10, progress=True)
    assert capsys.readouterr().err.splitlines().count(NO_EVALUATION) == 1
    run(env=None, out=tmp_path / "unwanted", steps=10, progress=True)
    lava()
    assert NO_EVALUATION not in capsys.readouterr().err
