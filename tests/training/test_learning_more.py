"""That methods with continuous actions, and IQL with discrete ones, do better than what was logged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dr3.data import assemble, load
from dr3.methods import BC, IQL, TD3BC, ContinuousIQL, DiscreteBC, ReBRAC
from dr3.training import train

pytestmark = pytest.mark.slow

LENGTH, DISCOUNT = 6, 0.9
SMALL: Any = {"hidden": (32,), "batch_size": 64, "learning_rate": 3e-3, "discount": DISCOUNT}
ACTOR: Any = {**SMALL, "policy_hidden": (32,), "policy_learning_rate": 3e-3}


def step(place, action):
    """A place on a line, moved by half the action; what is paid is how close to 0 it is."""
    after = np.clip(place + 0.5 * np.clip(action, -1, 1), -2, 2)
    return after, 1 - after**2


def earned(policy, episodes=64):
    place = np.random.default_rng(1).uniform(-2, 2, (episodes, 1)).astype(np.float32)
    total = np.zeros(episodes)
    for _ in range(LENGTH):
        place, reward = step(place, policy(place))
        total += reward[:, 0]
    return total.mean()


@pytest.fixture(scope="module")
def line():
    """400 episodes of actions at random, a little towards 0."""
    random = np.random.default_rng(0)
    columns: dict[str, list[Any]] = {"observations": [], "actions": [], "rewards": [], "timeouts": []}
    for _ in range(400):
        place = random.uniform(-2, 2, 1)
        for time in range(LENGTH):
            action = np.clip(random.uniform(-1, 1, 1) - 0.1 * place, -1, 1)
            after, reward = step(place, action)
            for name, value in zip(columns, (place, action, reward[0], time == LENGTH - 1), strict=True):
                columns[name].append(value)
            place = after
    table: dict[str, Any] = {name: np.array(column, np.float32) for name, column in columns.items()}
    table["timeouts"] = table["timeouts"] > 0
    table["terminals"] = np.zeros(len(table["rewards"]), np.bool_)
    return assemble(table, source="line", name="line", discount=DISCOUNT)


@pytest.fixture(scope="module")
def cloned(line, tmp_path_factory):
    runs = train(line, BC(**ACTOR), steps=400, env=None, out=tmp_path_factory.mktemp("bc") / "run", progress=False)
    return earned(runs.policy)


@pytest.mark.parametrize(
    "method",
    [TD3BC(**ACTOR), ReBRAC(**ACTOR), ContinuousIQL(expectile=0.9, advantage_weight=10.0, **ACTOR)],
    ids=lambda method: method.name,
)
def test_continuous_methods_do_better_than_cloning(method, line, cloned, tmp_path):
    best = earned(lambda place: -2 * place)
    runs = train(line, method, steps=1500, env=None, metrics_every=1500, out=tmp_path / "run", progress=False)
    assert earned(runs.policy) > cloned + 0.5 * (best - cloned)


def test_discrete_iql_does_better_than_cloning(tmp_path):
    data = load("grid16smoothobs:size=2000", discount=0.95)
    settings: Any = {**SMALL, "discount": 0.95}
    returns = {}
    for method in (DiscreteBC(**settings), IQL(expectile=0.9, advantage_weight=3.0, **settings)):
        runs = train(
            data,
            method,
            steps=2000,
            metrics_every=2000,
            evaluate_every=2000,
            out=tmp_path / method.name,
            progress=False,
        )
        returns[method.name] = runs.evaluations["evaluation/return"][0]
    assert returns["discrete-bc"][-1] > returns["discrete-bc"][0] + 1
    assert returns["iql"][-1] > returns["discrete-bc"][-1]
