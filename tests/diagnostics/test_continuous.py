"""The doctor, the rules and a start from elsewhere, with two critics and a policy."""

from __future__ import annotations

import numpy as np
import pytest

from dr3.diagnostics import health, measure, select
from dr3.diagnostics.reinitialisation import replace_layer
from dr3.instruments import srank
from dr3.methods import SAC
from dr3.ope import FQE, evaluate
from dr3.regularizers import DR3
from dr3.training import train

METHOD = SAC(hidden=(8, 6), policy_hidden=(5,), batch_size=8, reward_scale=2.0)


@pytest.fixture(scope="module")
def runs(logged_continuous, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "sac"
    return train(logged_continuous, METHOD, regularizer=DR3(0.01), steps=6, env=None, out=out, progress=False)


def test_instruments_are_averaged_over_the_critics(runs, logged_continuous):
    measured = measure(runs, logged_continuous, gradients=False, steps=[6])
    phi = runs.features(logged_continuous.observations, logged_continuous.actions)
    assert phi.shape == (2, 48, 6)
    assert measured.columns["rank/srank"][0, 0] == np.mean([srank(phi[0]), srank(phi[1])])
    assert measured.columns["features/norm"][0, 0] == pytest.approx(np.linalg.norm(phi, axis=-1).mean(), rel=1e-5)
    # What is possible is counted in the rewards that were learned from.
    assert measured.columns["q/largest_return"][0, 0] == pytest.approx(2 * logged_continuous.rewards.max() * 100)
    assert {"features/dot_product", "td/error", "losses/dr3"} <= runs.metrics.keys()


def test_the_doctor_sees_the_actions_that_training_saw(runs, logged_continuous):
    """a' is drawn from the policy: with the same noise, dot products of a checkpoint are those that were logged."""
    measured = measure(runs, logged_continuous, gradients=False, steps=[0, 6])
    np.testing.assert_allclose(
        measured.columns["features/dot_product"], runs.metrics["features/dot_product"][:, [0, -1]], rtol=1e-5
    )


def test_the_doctor_and_the_rules_can_look_at_it(runs, logged_continuous):
    assert health(runs, logged_continuous).measurements.rows == 48
    assert select(runs, "last", logged_continuous).choices[0].step == 6


@pytest.mark.slow
def test_fitted_evaluation_finds_the_value_of_a_policy(logged_continuous):
    """Nothing is discounted but the next step by 0: the value of the first states is their reward, whatever follows."""
    fqe = FQE(networks=2, hidden=(32, 32), batch_size=48, learning_rate=0.01, updates_per_copy=100)
    first = np.flatnonzero(np.diff(logged_continuous.episodes, prepend=-1))
    did = dict(zip(map(bytes, logged_continuous.observations), logged_continuous.actions, strict=True))
    policy = {"one": lambda s: np.array([did.get(bytes(row), [0, 0]) for row in s], np.float32)}
    found = evaluate(policy, logged_continuous, discount=0.0, fqe=fqe)
    assert found.policies[0].estimates["fqe"].estimate == pytest.approx(
        logged_continuous.rewards[first].mean(), abs=0.2
    )
    assert "continuum" in found.policies[0].reasons["is"]


def test_layers_are_the_policys(runs, logged_continuous):
    start, end = runs.critics(0)[0], runs.critics(6)[0]
    assert list(end.layers()) == ["dense1", "head"]
    changed = replace_layer(end, "head", start)
    act = METHOD.act(changed, logged_continuous.observations)
    assert (act != METHOD.act(end, logged_continuous.observations)).any()


def test_a_start_from_elsewhere(runs, logged_continuous, tmp_path):
    place = f"{runs.path}@6"
    more = train(logged_continuous, METHOD, steps=1, env=None, init_from=place, out=tmp_path / "more", progress=False)
    np.testing.assert_array_equal(
        more.policy(logged_continuous.observations, step=0), runs.policy(logged_continuous.observations)
    )
