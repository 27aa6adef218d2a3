from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import dr3
from dr3.diagnostics import Measurements
from dr3.errors import UserError
from dr3.instruments import cosine, dormant_features, dot_product, norm, srank
from dr3.regularizers import DR3
from dr3.reports.kept import KeptMeasurement
from dr3.reports.watch import Watcher
from dr3.runs import Runs, digest

METRICS = {
    "losses/total",
    "losses/td",
    "losses/dr3",
    "td/error",
    "q/data_mean",
    "q/target_mean",
    "features/dot_product",
    "features/cosine",
    "features/norm",
    "features/norm_next",
    "features/srank",
    "gradients/norm",
    "weights/distance",
    "dormant/dense1",
    "churn/actions",
}


@pytest.fixture
def runs(run, tmp_path):
    return run(out=tmp_path / "run", steps=50, seeds=2, regularizer=DR3(0.1))


def test_metrics_are_arrays_at_their_cadence_and_at_the_end(runs):
    assert runs.steps.tolist() == [0, 10, 20, 30, 40, 50]
    assert runs.evaluation_steps.tolist() == [0, 20, 40, 50]
    assert runs.checkpoints == [0, 20, 40, 50]
    assert set(runs.metrics) == METRICS
    assert {values.shape for values in runs.metrics.values()} == {(2, 6)}
    assert all(np.isfinite(values).all() for values in runs.metrics.values())
    assert {values.shape for values in runs.evaluations.values()} == {(2, 4)}


def test_rows_on_disk_say_step_and_member_and_keep_every_return(runs):
    lines = [json.loads(line) for line in runs.folder.evaluations.read_text().splitlines()]
    assert [(line["step"], line["member"]) for line in lines] == [(s, m) for s in (0, 20, 40, 50) for m in (0, 1)]
    assert all(len(line["returns"]) == 3 for line in lines)
    assert runs.returns[1][2] == lines[5]["returns"]
    assert runs.evaluations["evaluation/return"][1, 2] == pytest.approx(np.mean(lines[5]["returns"]))
    lines = [json.loads(line) for line in runs.folder.metrics.read_text().splitlines()]
    assert len(lines) == 12
    assert set(lines[0]) == METRICS | {"step", "member"}


def test_metrics_are_what_the_instruments_say_of_the_probe_set(runs, logged):
    """The table is smaller than the probe set: all of it is measured, at the last checkpoint as anywhere."""
    phi = runs.features(logged.observations, logged.actions, member=1)
    phi_next = runs.features(logged.next_observations, logged.next_actions, member=1)
    bootstraps = 1.0 - logged.terminals
    last = {name: values[1, -1] for name, values in runs.metrics.items()}
    assert last["features/dot_product"] == pytest.approx(dot_product(phi, phi_next, bootstraps), rel=1e-4)
    assert last["features/cosine"] == pytest.approx(cosine(phi, phi_next, bootstraps), rel=1e-4)
    assert last["features/norm"] == pytest.approx(norm(phi).mean(), rel=1e-4)
    assert last["features/norm_next"] == pytest.approx(norm(phi_next).mean(), rel=1e-4)
    assert last["features/srank"] == srank(phi)
    assert last["q/data_mean"] == pytest.approx(runs.q(logged.observations, logged.actions, member=1).mean(), rel=1e-4)
    assert last["losses/total"] == pytest.approx(last["losses/td"] + 0.1 * last["losses/dr3"], rel=1e-5)
    moved = [
        np.sum((np.asarray(now) - np.asarray(then)) ** 2)
        for now, then in zip(*(jax.tree.leaves(runs.critics(step)[1]) for step in (50, 0)), strict=True)
    ]
    assert last["weights/distance"] == pytest.approx(np.sqrt(np.sum(moved)), rel=1e-4)
    assert last["dormant/dense1"] == dormant_features(phi)
    # Ten updates after the checkpoint before; METHOD.target_period of them between two target copies.
    now, before = (runs.policy(logged.observations, member=1, step=step) for step in (50, 40))
    copies = max(1, 10 / runs.members[1].method.target_period)
    assert last["churn/actions"] == pytest.approx(np.mean(now != before) / copies)
    # The regularizer's mean is over all rows, the instrument's over those that bootstrap: 45 of 48.
    assert last["losses/dr3"] == pytest.approx(last["features/dot_product"] * 45 / 48, rel=1e-5)


def test_what_was_learned_takes_and_gives_numpy(runs, logged):
    observations, actions = logged.observations[:5], logged.actions[:5]
    policy, q, phi = runs.policy(observations), runs.q(observations, actions), runs.features(observations, actions)
    assert [type(each) for each in (policy, q, phi)] == [np.ndarray] * 3
    assert [each.shape for each in (policy, q, phi)] == [(5,), (5,), (5, 8)]
    every = np.stack([runs.q(observations, np.full(5, action)) for action in range(3)], axis=1)
    np.testing.assert_array_equal(policy, every.argmax(axis=1))
    assert (q != runs.q(observations, actions, member=1)).all()
    assert (q != runs.q(observations, actions, step=0)).all()
    np.testing.assert_array_equal(q, runs.q(observations.astype(np.float64).tolist(), actions.tolist(), step=50))
    assert runs.policy(observations[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda runs: runs.policy(np.zeros(4)), r"shape \(n, 4\), not \(4,\)"),
        (lambda runs: runs.policy(np.zeros((2, 5))), r"shape \(n, 4\), not \(2, 5\)"),
        (lambda runs: runs.q(np.zeros((2, 4)), [0]), r"shape \(2,\), one for each observation, not \(1,\)"),
        (lambda runs: runs.q(np.zeros((2, 4)), [0, 3]), "whole numbers from 0 to 2"),
        (lambda runs: runs.q(np.zeros((2, 4)), [0, 0.5]), "whole numbers from 0 to 2"),
        (lambda runs: runs.policy([["a"] * 4]), "Observations must be real numbers, not values of type <U1"),
        (lambda runs: runs.policy([[1, 2], [3]]), "Observations must all have the same shape"),
        (lambda runs: runs.policy(np.zeros((2, 4)), member="0"), "there is no member 0"),
        (lambda runs: runs.policy(np.zeros((2, 4)), member=2), "has 2 members, numbered from 0; there is no member 2"),
        (lambda runs: runs.policy(np.zeros((2, 4)), step=10), r"no checkpoint of step 10; it has \[0, 20, 40, 50\]"),
    ],
)
def test_wrong_questions_are_answered_in_one_sentence(runs, call, says):
    with pytest.raises(UserError, match=says):
        call(runs)


def test_opened_later_it_is_the_same(runs, logged):
    again = dr3.open(str(runs.path))
    assert isinstance(again, Runs)
    np.testing.assert_array_equal(again.policy(logged.observations), runs.policy(logged.observations))
    np.testing.assert_array_equal(again.metrics["td/error"], runs.metrics["td/error"])
    assert again.members == runs.members
    assert digest(again) == digest(runs)
    assert runs.labels == [{"seed": 0}, {"seed": 1}]
    assert len(runs) == 2
    assert "dqn, 2 members, step 50" in repr(runs)


def test_the_folder_says_where_it_came_from(runs):
    environment = json.loads(runs.folder.environment.read_text())
    assert {"python", "packages", "commit", "system", "processor", "cores", "devices"} <= set(environment)
    assert environment["packages"]["jax"]
    config = json.loads(runs.folder.config.read_text())
    assert config["data"]["name"] == "logged"
    assert config["data"]["rows"] == 48


def test_the_digest_sees_weights_metrics_and_evaluations_and_nothing_else(runs):
    shutil.rmtree(runs.folder.path / "state")  # it would notice
    before = digest(runs)
    runs.folder.environment.write_text("{}")
    assert digest(Runs(runs.path)) == before
    lines = runs.folder.metrics.read_text()
    runs.folder.metrics.write_text(lines.replace('"step": 10', '"step": 11', 1))
    assert digest(Runs(runs.path)) != before
    runs.folder.metrics.write_text(lines)
    assert digest(Runs(runs.path)) == before


def test_a_damaged_middle_line_is_said(runs):
    shutil.rmtree(runs.folder.path / "state")  # without its checksum the line is told by itself
    lines = runs.folder.metrics.read_text().splitlines(keepends=True)
    runs.folder.metrics.write_text("".join([lines[0], lines[1][:10] + "\n", *lines[2:]]))
    with pytest.raises(UserError, match=r"metrics.jsonl is damaged: line 2 is not JSON"):
        _ = Runs(runs.path).metrics


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "config.json is damaged: it is not JSON"),
        ('{"members": [', "config.json is damaged: it is not JSON"),
        ("[]", "config.json is damaged or not one of dr3's: its 'data' is missing or of another kind"),
        ("{}", "config.json is damaged or not one of dr3's: its 'data' is missing or of another kind"),
    ],
)
def test_a_configuration_that_is_none_is_said(copied_run, content, says):
    (copied_run / "config.json").write_text(content)
    with pytest.raises(UserError, match=says):
        Runs(copied_run)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"members": []}, "it has no members"),
        ({"members": 3}, "its 'members' is missing or of another kind"),
        ({"members": [{}]}, "not of a run that this dr3 can read"),
        ({"members": [{"method": {"name": "later"}, "regularizer": None, "seed": 0}]}, "There is no method 'later'"),
        ({"members": ["dqn"]}, "not of a run that this dr3 can read"),
        ({"action_space": {"kind": "Words"}}, "not of a run that this dr3 can read .*'Words'"),
    ],
)
def test_a_configuration_of_something_else_is_said_with_its_file(copied_run, change, says):
    config = json.loads((copied_run / "config.json").read_text())
    (copied_run / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(UserError, match=rf"config\.json.*{says}"):
        Runs(copied_run)


@pytest.mark.parametrize("content", ["", '{"step": 5', '{"step": "5", "finished": true, "diverged": {}}'])
def test_a_damaged_status_is_said_with_its_file(copied_run, content):
    (copied_run / "status.json").write_text(content)
    with pytest.raises(UserError, match=r"status\.json is damaged"):
        _ = Runs(copied_run).status


@pytest.mark.parametrize("name", ["config.json", "status.json"])
def test_a_page_that_watches_says_what_is_damaged(copied_run, name):
    (copied_run / name).write_text("{")
    assert f"{name} is damaged" in Watcher([copied_run]).page()


def test_a_kept_measurement_that_cannot_be_opened_counts_as_none(copied_run):
    kept = KeptMeasurement(Runs(copied_run), 40, "last-layer")
    kept.write(Measurements(np.array([40]), {"q/mean": np.ones((4, 1))}, 64))
    assert kept.read() is not None
    content = bytearray(kept.path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] ^= 1  # as if it were encrypted
    kept.path.write_bytes(content)
    assert kept.read() is None


def test_a_checkpoint_of_other_shapes_is_said_with_its_file(copied_run):
    with np.load(copied_run / "checkpoints" / "000000040.npz") as stored:
        kept = {name: stored[name] for name in stored.files[1:]}
    np.savez(copied_run / "checkpoints" / "000000040.npz", allow_pickle=False, **kept)
    runs = Runs(copied_run)
    assert runs.checkpoints == [0, 20, 40]
    with pytest.raises(UserError, match=r"000000040\.npz is damaged, or not of this run"):
        runs.critics(40)


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"is not a run: it has no config\.json"):
        dr3.open(tmp_path)


def test_a_folder_without_a_name_is_called_after_its_configuration(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = run(steps=20)
    assert runs.path.parent == Path("runs")
    assert runs.path.name.startswith("dqn-logged-")
    assert run(steps=40).path == runs.path  # lengthened
    assert run(steps=20, seeds=2).path != runs.path


untyped: Any = dr3  # for settings that its types do not allow


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"metrics_every": 0}, "metrics_every must be at least 1, not 0"),
        ({"chunk": 0}, "chunk must be at least 1, not 0"),
        ({"steps": 2.5}, "steps must be a whole number, not 2.5"),
        ({"steps": "10"}, "steps must be a whole number, not '10'"),
        ({"steps": math.nan}, "steps must be a whole number, not nan"),
        ({"steps": 3_000_000_000}, "steps must be at most 2147483647, not 3000000000"),
        ({"evaluate_every": 2.5}, "evaluate_every must be a whole number, not 2.5"),
        ({"chunk": 0.5}, "chunk must be a whole number, not 0.5"),
        ({"episodes": None}, "episodes must be a whole number, not None"),
        ({"env": 3}, r"env must be a world's name \(CartPole-v1\), one of dr3.envs or an Evaluator, not a int"),
        ({"seeds": None}, "seeds must be a whole number, not None"),
        ({"seeds": "3"}, "A seed is a whole number from 0 to 4294967295, not '3'"),
        ({"regularizer": []}, "at least one regularizer; none at all is written None"),
        ({"regularizer": "dr3:0.03"}, r"A regularizer is None or one such as dr3.DR3\(0.03\), not 'dr3:0.03'"),
        ({"regularizer": 0.03}, r"A regularizer is None or one such as dr3.DR3\(0.03\), not 0.03"),
        ({"regularizer": dr3.DR3}, "A regularizer is None or one such as .*, not <class"),
        ({"seeds": [0.5]}, "A seed is a whole number from 0 to 4294967295, not 0.5"),
        ({"data_on": "gpu"}, "data_on must be one of 'auto', 'device', 'host', not 'gpu'"),
        ({"env": "grid16smoothobs"}, r"The data's observations have the shape \(4,\), those of the world"),
        ({"env": "Nowhere-v0"}, "There is no world 'Nowhere-v0'"),
        ({"env": "grid16smoothobs:lava=1"}, "The fraction of lava must be at least 0 and below 1, not 1.0"),
        ({"env": "grid16smoothobs:size=9"}, "has no setting 'size'; it has dim_obs, lava, matrix_only_noise"),
    ],
)
def test_settings_that_make_no_sense_are_refused(run, tmp_path, options, says):
    with pytest.raises(UserError, match=says):
        run(out=tmp_path / "run", **options)


@pytest.mark.parametrize("method", ["dqn", dr3.DQN])
def test_what_is_no_method_is_refused(logged, tmp_path, method):
    with pytest.raises(UserError, match=r"A method is one such as dr3.DQN\(\), not ('dqn'|<class)"):
        dr3.train(logged, method, steps=1, out=tmp_path / "run", progress=False)


@pytest.mark.parametrize("data", ["grid16smoothobs", Path("logged.npz"), None, {"observations": []}])
def test_data_that_are_no_table_are_refused(data, tmp_path):
    with pytest.raises(UserError, match=r"data must be a table, as dr3.load or dr3.data.assemble makes one, not "):
        dr3.train(data, dr3.DQN(), steps=1, out=tmp_path / "run", progress=False)


def test_whole_numbers_may_be_written_1e1_or_come_out_of_numpy(logged, tmp_path):
    untyped_train: Any = dr3.train
    runs = untyped_train(
        logged,
        untyped.DQN(hidden=np.array([4]), batch_size=np.int64(4), learning_rate=np.float32(0.5)),
        regularizer=np.array([None, dr3.DR3(float(np.float32(0.5)))]),
        seeds=np.arange(2),
        steps=1e1,
        metrics_every=np.int64(5),
        evaluate_every=5.0,
        chunk=np.int32(3),
        out=tmp_path / "run",
        progress=False,
    )
    assert runs.status["step"] == 10
    assert runs.steps.tolist() == [0, 5, 10]
    assert runs.members[0].method == dr3.DQN(hidden=(4,), batch_size=4, learning_rate=0.5)
    assert [member.seed for member in runs.members] == [0, 1, 0, 1]
