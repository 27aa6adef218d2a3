"""Standardised observations and scaled rewards are part of what was learned."""

from __future__ import annotations

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dr3
from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.methods import DQN, METHODS, ContinuousMethod, Spec, Supervised
from dr3.training import train

SMALL = {"policy_hidden": (4,), "sampled_actions": 2, "heads": 3, "behavior_steps": 1}


def in_other_units(data):
    """The same rows with columns in other units, far from unit scale."""
    factor, offset = np.array([100.0, 0.01, 3.0, 1.0]), np.array([5.0, 0.0, -40.0, 2.0])
    columns = (data.observations, data.next_observations)
    here, following = (np.asarray(column * factor + offset, np.float32) for column in columns)
    return dataclasses.replace(data, observations=here, next_observations=following)


@pytest.mark.parametrize("name", ["dqn", "rem", "iql", "brac", "continuous-iql", "td3-bc"])
def test_a_standardised_method_does_not_feel_the_units_of_its_data(name, logged, logged_continuous):
    method = METHODS[name]()
    small = {key: value for key, value in SMALL.items() if hasattr(method, key)}
    method = dataclasses.replace(method, hidden=(6,), standardise=True, **small)
    table = logged_continuous if isinstance(method, ContinuousMethod) else logged
    told = []
    for data in (table, in_other_units(table)):
        prepared = method.prepare(data)
        learner = method.init(Spec.of(data, standardise=True), jax.random.key(0))
        batch = Batch.of(prepared)
        loss, _ = method.loss(method.model(learner), learner, batch, jax.random.key(1))
        told.append((loss, method.act(method.model(learner), batch.observations)))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3), *told)


@pytest.fixture(scope="module")
def standardised(logged, tmp_path_factory):
    out = tmp_path_factory.mktemp("standardised") / "run"
    method = DQN(hidden=(6,), batch_size=8, standardise=True, optimizer="adamw", reward_scale=0.5)
    return train(in_other_units(logged), method, steps=6, evaluate_every=3, env=None, out=out, progress=False)


def test_a_run_keeps_the_numbers_and_its_policy_takes_raw_observations(standardised, logged):
    data = in_other_units(logged)
    columns = dr3.Runs(standardised.path).spec.standardisation
    assert columns is not None
    assert columns == Spec.of(data, standardise=True).standardisation
    np.testing.assert_allclose(columns.mean, data.observations.mean(axis=0), rtol=1e-4)
    critic = standardised.critics()[0]
    seen = (data.observations - np.array(columns.mean)) / np.array(columns.deviation)
    plain = dataclasses.replace(critic.trunk, standardisation=None)
    np.testing.assert_allclose(critic.trunk(jnp.asarray(data.observations)), plain(jnp.asarray(seen)), rtol=1e-3)
    assert standardised.policy(data.observations).shape == (48,)


def test_what_the_configuration_says_of_it_is_held_to_its_type(standardised, tmp_path):
    record = json.loads((standardised.path / "config.json").read_text())
    (tmp_path / "run").mkdir()
    for wrong in ([1.0], [1.0, 2.0, 3.0, 0.0]):
        record["standardisation"]["deviation"] = wrong
        (tmp_path / "run" / "config.json").write_text(json.dumps(record))
        with pytest.raises(UserError, match=r"standardisation: .*deviation"):
            dr3.Runs(tmp_path / "run")


def test_rewards_are_scaled_where_learning_looks_at_them(logged):
    scaled = DQN(reward_scale=2.0, reward_shift=1.0).prepare(logged)
    np.testing.assert_allclose(scaled.rewards, 2 * (logged.rewards + 1), rtol=1e-6)
    assert DQN().prepare(logged) is logged


def test_regression_learns_returns_of_the_scaled_rewards(corridor_log):
    """Straight to the end in four steps with 1 at the end: each step pays 2 · (r + 1)."""
    whole = corridor_log.rows(slice(4))
    doubled = Supervised(discount=0.99, reward_scale=2.0).prepare(corridor_log)
    np.testing.assert_allclose(doubled.returns, 2 * corridor_log.returns)
    shifted = Supervised(discount=0.25, reward_scale=2.0, reward_shift=1.0).prepare(whole)
    np.testing.assert_allclose(shifted.returns, [2.6875, 2.75, 3, 4])
    with pytest.raises(UserError, match="reward_shift changes returns by the length of episodes"):
        Supervised(reward_shift=1.0).prepare(corridor_log.rows(np.array([0, 2, 3])))


def test_pictures_are_refused_and_a_spec_without_the_numbers_too(logged, logged_pictures):
    with pytest.raises(UserError, match="standardise is for observations that are vectors"):
        dr3.BC(standardise=True).prepare(logged_pictures)
    with pytest.raises(UserError, match="standardise needs the mean and deviation"):
        DQN(standardise=True).init(Spec.of(logged), jax.random.key(0))
