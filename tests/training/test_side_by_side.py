from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data import ContinuousActions
from dr3.envs import normalised_score
from dr3.methods import DQN, Spec
from dr3.runs.results import read_results
from dr3.training import side_by_side, train
from dr3.training.evaluation import Policy, Rollouts, evaluator_for
from dr3.training.side_by_side import COPIES, play_side_by_side


class Walk(gymnasium.Env):
    """A walk on a line from a random place, one step of the action (clipped to 1) at a time; it ends beyond 5."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(0, 4, 1)
        return self.place.astype(np.float32), {"success": False}

    def step(self, action):
        assert self.action_space.contains(action)
        self.place = self.place + action
        over = bool(self.place[0] > 5)
        return self.place.astype(np.float32), float(action[0]), over, False, {"success": over}


@pytest.fixture(autouse=True)
def walk(monkeypatch):
    monkeypatch.setattr(side_by_side, "_kept", side_by_side._Kept())
    monkeypatch.setattr(side_by_side, "make_world", lambda name: gymnasium.wrappers.TimeLimit(Walk(), 20))


def test_an_episode_is_a_function_of_its_seed(monkeypatch):
    shapes = set()

    def act(rows):
        shapes.add(rows.shape)
        return 0.3 * rows - 0.2

    many = play_side_by_side("walk", act, range(40), 0.9)  # more than copies: they take turns
    few = play_side_by_side("walk", act, [7, 3], 0.9)
    assert few == [many[7], many[3]]
    assert shapes == {(COPIES, 1)}  # always so many rows
    monkeypatch.setattr(side_by_side, "available_cores", lambda: 3)
    monkeypatch.setattr(side_by_side, "_threads_pay", lambda world: True)
    assert play_side_by_side("walk", act, range(40), 0.9) == many
    assert len({episode.length for episode in many}) > 1


def test_actions_stay_inside_the_bounds_and_sums_are_right():
    start = float(np.random.default_rng(0).uniform(0, 4))  # Gymnasium's generator, given the seed
    (episode,) = play_side_by_side("walk", lambda rows: np.full((len(rows), 1), 9.0), [0], 0.5)
    steps = int(np.floor(5 - start)) + 1
    assert (episode.total, episode.length, episode.success) == (steps, steps, True)
    assert episode.discounted == pytest.approx(2 - 0.5 ** (steps - 1))
    (idle,) = play_side_by_side("walk", lambda rows: np.zeros((len(rows), 1)), [0], 0.5)
    assert (idle.total, idle.length, idle.success) == (0.0, 20, False)


class Right(Policy):
    def __call__(self, observations, masks=None):
        return np.ones((len(observations), 1))


RIGHT = Right(DQN(), None, Spec((1,), ContinuousActions(1)))


def test_success_and_the_normalised_score_stand_beside_the_returns():
    outcome = Rollouts("antmaze/umaze", episodes=4)(RIGHT, seed=0, step=5, discount=1.0)
    assert outcome["evaluation/success"] == 1.0
    assert outcome["evaluation/length"] == outcome["evaluation/return"] == np.mean(outcome["returns"])
    assert outcome["evaluation/normalised_score"] == pytest.approx(100 * outcome["evaluation/return"])
    again = Rollouts("walk", episodes=4)(RIGHT, seed=0, step=5, discount=1.0)
    assert again["returns"] == outcome["returns"]
    assert "evaluation/normalised_score" not in again
    other = Rollouts("walk", episodes=4)(RIGHT, seed=0, step=6, discount=1.0)
    assert other["returns"] != outcome["returns"]


def test_threads_do_not_step_each_others_worlds():
    seeds = range(COPIES)
    alone = play_side_by_side("walk", lambda rows: np.full((len(rows), 1), 0.2), seeds, 0.9)
    turns = threading.Barrier(2)

    def act(rows):
        turns.wait()  # both threads are inside an episode at every step
        return np.full((len(rows), 1), 0.2)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: play_side_by_side("walk", act, seeds, 0.9), range(2))) == [alone, alone]


def test_a_gymnasium_world_is_tried_by_episodes():
    evaluator = evaluator_for("CartPole-v1", episodes=3)
    assert evaluator.describe() == {"kind": "rollouts", "env": "CartPole-v1", "episodes": 3}


def test_the_score_goes_into_the_results(logged, tmp_path):
    class Scored(Rollouts):
        def __call__(self, policy, *, seed, step, discount):
            return super().__call__(RIGHT, seed=seed, step=step, discount=discount)

    method = DQN(hidden=(4,), batch_size=8)
    runs = train(logged, method, steps=2, out=tmp_path / "run", env=Scored("hopper", 2), progress=False)
    last = read_results(runs.folder.results)[-1]
    assert last.score == pytest.approx(normalised_score("hopper", float(np.mean(last.returns))))


class Doors(gymnasium.Env):
    """Three doors; which may be taken is said as Gymnasium says it. Taking another one is an error. Four steps."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(2, np.float32), self._said()

    def step(self, action):
        assert self._said()["action_mask"][action]
        self.time += 1
        return np.zeros(2, np.float32), float(action), self.time == 4, False, self._said()

    def _said(self):
        return {"action_mask": np.array([1, self.time % 2, 0], np.int8)}


def test_a_policy_is_told_which_actions_a_world_allows(monkeypatch, logged):
    monkeypatch.setattr(side_by_side, "make_world", lambda name: Doors())
    told = []

    def act(rows, masks):
        told.append(masks)
        return np.argmax(np.where(masks, [0.0, 1.0, 9.0], -np.inf), axis=-1)

    episodes = play_side_by_side("doors", act, [0, 1, 2], 1.0)
    assert [episode.total for episode in episodes] == [2.0] * 3  # the second door at every second step
    assert all(masks.shape == (COPIES, 3) for masks in told)
    # A learned one, whose largest value is the last door's.
    method = DQN(hidden=(4,))
    data = dataclasses.replace(logged, observations=logged.observations[:, :2])
    critic = method.model(method.init(Spec.of(data), jax.random.key(0)))
    critic = eqx.tree_at(lambda c: c.head.bias, critic, jnp.array([0.0, 100.0, 1e4]))
    policy = Policy(method, critic, Spec.of(data))
    assert (policy(np.zeros((2, 2), np.float32)) == 2).all()
    assert [episode.total for episode in play_side_by_side("doors", policy, [5], 1.0)] == [2.0]
