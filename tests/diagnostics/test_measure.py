from __future__ import annotations

import dataclasses
import shutil

import jax
import numpy as np
import pytest

from dr3.data import load
from dr3.data.batch import Batch
from dr3.data.transitions import DiscreteActions
from dr3.diagnostics import measure
from dr3.diagnostics.measure import measure_backup, parameter_grams, training_data
from dr3.errors import UserError
from dr3.instruments import ReturnBounds
from dr3.methods import DQN, SARSA, TD, Supervised, backup_of
from dr3.training import train
from dr3.training.metrics import probe_of


def test_training_measured_the_same(runs):
    """What training logged of a critic is what the doctor finds in its checkpoint.

    The TD error too, because the target network has just been copied from the critic wherever there is a checkpoint.
    """
    found = measure(runs, gradients=False)
    logged = [int(np.flatnonzero(runs.steps == step)[0]) for step in found.steps]
    for ours, theirs in {
        "features/dot_product": "features/dot_product",
        "features/cosine": "features/cosine",
        "features/norm": "features/norm",
        "rank/srank": "features/srank",
        "q/mean": "q/data_mean",
        "td/error_online": "td/error",
    }.items():
        np.testing.assert_allclose(found.columns[ours], runs.metrics[theirs][:, logged], rtol=1e-5, err_msg=ours)


def test_every_checkpoint_of_every_member(runs):
    held_out = load("grid16smoothobs:size=32:seed=9", discount=0.9)
    found = measure(runs, held_out=held_out)
    assert found.steps.tolist() == [0, 20, 40, 60]
    assert found.rows == 64
    assert all(values.shape == (2, 4) for values in found.columns.values())
    assert all(np.isfinite(values).all() for values in found.columns.values())
    assert (found.columns["td/held_out_error"] != found.columns["td/error_online"]).all()
    assert measure(runs, steps=[40], gradients=False).columns["q/mean"] == pytest.approx(
        found.columns["q/mean"][:, [2]]
    )


def test_data_are_prepared_once_for_all_checkpoints_and_members(runs, monkeypatch):
    prepare, calls = DQN.prepare, []
    monkeypatch.setattr(DQN, "prepare", lambda self, data: [calls.append(self), prepare(self, data)][1])
    measure(runs, gradients=False)
    assert len(calls) == 1


def test_td_error_bootstraps_from_the_critics_own_action(runs):
    found = measure(runs, gradients=False)
    data = load("grid16smoothobs:size=64", discount=0.9)
    q = np.stack([runs.q(data.next_observations, np.full(64, action)) for action in range(5)]).max(0)
    errors = runs.q(data.observations, data.actions) - data.rewards - 0.9 * q
    assert found.columns["td/error_online"][0, -1] == pytest.approx((errors**2).mean(), rel=1e-4)


def look(method, data):
    """A fresh critic of the method, and its Backup of the data."""
    critic = method.model(method.init(_spec(data), jax.random.key(0)))
    return critic, backup_of(method, critic, _spec(data), Batch.of(method.prepare(data)), jax.random.key(1))


def online_error(backup):
    return measure_backup(backup, ReturnBounds(-1, 1))["td/error_online"]


@pytest.fixture
def three(logged):
    """A row inside an episode, one at a terminal, and one at a time-out, where 0 stands for an a' that nobody knows."""
    rows, known = np.array([3, 7, 15]), np.array([True, False, False])
    return dataclasses.replace(
        logged.rows(rows), next_action_known=known, next_actions=np.where(known, logged.next_actions[rows], 0)
    )


def q(critic, observations):
    return np.asarray(critic.values(critic.features(observations)))


def test_sarsa_is_measured_at_logged_actions_alone(three):
    critic, backup = look(SARSA(hidden=(4,), discount=0.5), three)
    assert backup.next_actions.tolist() == three.next_actions[:2].tolist()
    following = q(critic, three.next_observations)[[0, 1], three.next_actions[:2]]
    targets = three.rewards[:2] + np.array([0.5, 0]) * following
    errors = q(critic, three.observations)[[0, 1], three.actions[:2]] - targets
    assert online_error(backup) == pytest.approx((errors**2).mean(), rel=1e-5)


def test_td_learning_is_measured_by_the_expectation_that_it_backs_up(three):
    critic, backup = look(TD(hidden=(4,), discount=0.5), three)
    assert backup.next_actions.tolist() == three.next_behavior.argmax(1).tolist()
    expected = (three.next_behavior * q(critic, three.next_observations)).sum(1)
    targets = three.rewards + 0.5 * np.array([1, 0, 1]) * expected
    errors = q(critic, three.observations)[range(3), three.actions] - targets
    assert online_error(backup) == pytest.approx((errors**2).mean(), rel=1e-5)


def test_supervised_regression_is_measured_by_returns_and_bootstraps_from_nothing(three):
    critic, backup = look(Supervised(hidden=(32,), discount=0.99), three)
    errors = q(critic, three.observations)[range(3), three.actions] - three.returns
    assert online_error(backup) == pytest.approx((errors**2).mean(), rel=1e-5)
    assert measure_backup(backup, None)["features/co_adaptation"] == 0
    assert measure_backup(backup, None)["features/dot_product"] != 0


def test_products_over_all_parameters_are_those_of_explicit_gradients(logged):
    method = SARSA(hidden=(4,), discount=0.5)
    data = method.prepare(logged).rows(slice(7))
    critic, backup = look(method, data)
    found = parameter_grams(method, critic, Batch.of(data), backup)

    def rows(observations, actions):
        jacobian = jax.jacobian(lambda critic: method.values(critic, observations, actions))(critic)
        return np.concatenate([np.asarray(leaf).reshape(7, -1) for leaf in jax.tree.leaves(jacobian)], axis=1)

    here, there = rows(data.observations, data.actions), rows(data.next_observations, data.next_actions)
    np.testing.assert_allclose(found.same, here @ here.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.cross, there @ here.T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "hidden"),
    [((4,), (512, 4)), ((5, 5, 32), (4,)), ((10, 10, 4), (4,))],
    ids=["wide", "winograd", "minatar"],
)
def test_products_of_networks_that_cannot_be_differentiated_forwards(logged, shape, hidden):
    """Rows of 512 or 1024 floats, and 32 channels: on a CPU such products and convolutions have their own gradient."""
    seen = np.random.default_rng(0).integers(0, 2, (2, 3, *shape)).astype(np.float32)
    data = dataclasses.replace(logged.rows(slice(3)), observations=seen[0], next_observations=seen[1])
    method = SARSA(hidden=hidden, discount=0.5)
    critic, backup = look(method, data)
    found = parameter_grams(method, critic, Batch.of(data), backup)

    def row(observation, action):
        gradient = jax.grad(lambda critic: method.values(critic, observation[None], action[None])[0])(critic)
        return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(gradient)])

    here = np.stack([row(*pair) for pair in zip(data.observations, data.actions, strict=True)])
    there = np.stack([row(*pair) for pair in zip(data.next_observations, data.next_actions, strict=True)])
    np.testing.assert_allclose(found.same, here @ here.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.cross, there @ here.T, rtol=1e-4, atol=1e-5)


def test_a_probe_is_fixed(logged):
    assert probe_of(logged, 48) is logged
    few = probe_of(logged, 5)
    assert len(few) == 5
    assert few.fingerprint() == probe_of(logged, 5).fingerprint()


def test_other_data_than_the_runs_own_are_refused(runs, logged):
    with pytest.raises(UserError, match="fingerprints differ"):
        measure(runs, logged)
    runs.config = dataclasses.replace(runs.config, data=dataclasses.replace(runs.config.data, source=None))
    with pytest.raises(UserError, match="give the data"):
        measure(runs)


@pytest.mark.parametrize("part", [lambda table: table, lambda table: table.subset(0.3, seed=2)])
def test_data_that_were_loaded_at_another_discount_are_found_again(logged, tmp_path, part):
    columns = ("observations", "actions", "rewards", "terminals", "timeouts")
    np.savez(tmp_path / "logged.npz", **{name: getattr(logged, name) for name in columns})
    data = part(load(tmp_path / "logged.npz"))
    method = DQN(hidden=(4,), batch_size=4, discount=0.5)
    runs = train(data, method, steps=2, env=None, out=tmp_path / "run", progress=False)
    assert training_data(runs).fingerprint() == data.fingerprint()
    (tmp_path / "logged.npz").unlink()
    with pytest.raises(UserError, match=r"there is no such file; give the data of .* where they are now \(--data\)\."):
        training_data(runs)


def test_data_that_moved_can_be_given(runs):
    moved = dataclasses.replace(load("grid16smoothobs:size=64", discount=0.9), name="moved")
    assert measure(runs, moved, steps=[60], gradients=False).steps.tolist() == [60]


def test_a_run_without_a_whole_checkpoint_is_refused(own_runs):
    shutil.rmtree(own_runs.folder.checkpoints.folder)
    with pytest.raises(UserError, match="has no complete checkpoint yet"):
        measure(own_runs)


def test_held_out_observations_of_another_shape_are_refused(runs, logged):
    with pytest.raises(UserError, match=r"have observations of shape .* has \(16,\)"):
        measure(runs, held_out=logged, steps=[60], gradients=False)


def test_held_out_data_with_other_actions_are_refused(runs):
    more = dataclasses.replace(load("grid16smoothobs:size=32:seed=9", discount=0.9), action_space=DiscreteActions(10))
    with pytest.raises(UserError, match=r"count=10.*count=5"):
        measure(runs, held_out=more, steps=[60], gradients=False)


def test_held_out_data_need_not_hold_every_action(runs):
    held_out = load("grid16smoothobs:size=32:seed=9", discount=0.9)
    few = held_out.rows(np.flatnonzero(np.isin(held_out.actions, (0, 1, 2))))
    fewer = dataclasses.replace(few, action_space=DiscreteActions(4))
    found, same = (
        measure(runs, held_out=one, steps=[60], gradients=False).columns["td/held_out_error"] for one in (fewer, few)
    )
    np.testing.assert_array_equal(found, same)


def test_held_out_data_are_prepared_as_the_method_needs_them(tmp_path):
    """TD-learning needs π_β for every action that its critic knows, also where held-out data know fewer."""
    data, held_out = (load(f"grid16smoothobs:size=32:seed={seed}", discount=0.9) for seed in (0, 9))
    method = TD(hidden=(4,), batch_size=8, discount=0.9)
    runs = train(data, method, steps=1, env=None, out=tmp_path / "td", progress=False)
    few = held_out.rows(np.flatnonzero(np.isin(held_out.actions, range(4))))
    assert few.next_behavior is not None
    without = dataclasses.replace(few, next_behavior=None, action_space=DiscreteActions(4))
    likely = dataclasses.replace(few, next_behavior=few.next_behavior[:, :4], action_space=DiscreteActions(4))
    for table in (without, likely):
        found = measure(runs, data, held_out=table, steps=[1], gradients=False).columns["td/held_out_error"]
        assert np.isfinite(found).all()


def test_what_the_run_was_trained_on_is_refused_as_held_out(runs):
    with pytest.raises(UserError, match="name other episodes"):
        measure(runs, held_out=load("grid16smoothobs:size=64", discount=0.9), steps=[60], gradients=False)


def _spec(data):
    from dr3.methods import Spec

    return Spec.of(data)
