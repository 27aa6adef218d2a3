from __future__ import annotations

import json

import numpy as np
import pytest

from dr3.data import load
from dr3.errors import UserError
from dr3.reports import checkup
from dr3.reports.checkup import Checkup
from dr3.reports.kept import KeptMeasurement, kept_fqe
from dr3.runs import Runs


@pytest.fixture
def measured(copied_run, monkeypatch):
    """A function that looks at the first checkpoint of a run anew; and how often that was measured."""
    measure, calls = checkup.measure, []

    def counted(*arguments, **options):
        calls.append(options)
        return measure(*arguments, **options)

    monkeypatch.setattr(checkup, "measure", counted)

    def look():
        one = Checkup(gradients=False)
        runs = Runs(copied_run)
        one.measure(runs, runs.checkpoints[0])
        return one._measured[runs.checkpoints[0]], len(calls)

    return look


def test_a_checkpoint_is_measured_once(measured, copied_run):
    first, calls = measured()
    assert calls == 1
    again, calls = measured()
    assert calls == 1
    assert list(again.columns) == list(first.columns)
    for name, values in first.columns.items():
        np.testing.assert_array_equal(again.columns[name], values)
    assert (again.steps.tolist(), again.rows) == (first.steps.tolist(), first.rows)
    assert [file.name for file in (copied_run / "measurements").iterdir()] == ["000000000-last-layer.npz"]


def test_other_weights_members_data_or_settings_are_measured_again(measured, copied_run, monkeypatch):
    measured()
    with np.load(path := copied_run / "checkpoints" / "000000000.npz") as stored:
        weights = {name: 2 * values for name, values in stored.items()}
    np.savez(path, **weights)
    assert measured()[1] == 2
    config = json.loads((copied_run / "config.json").read_text())
    config["members"][0]["seed"] = 12345
    (copied_run / "config.json").write_text(json.dumps(config))
    assert measured()[1] == 3
    monkeypatch.setattr("dr3.reports.kept._code", lambda: "another version")
    assert measured()[1] == 4
    assert measured()[1] == 4


def test_what_is_damaged_is_measured_again(measured, copied_run):
    measured()
    kept = KeptMeasurement(Runs(copied_run), 0, "last-layer")
    for damage in (b"", kept.path.read_bytes()[:-40], b"PK no archive"):
        kept.path.write_bytes(damage)
        assert kept.read() is None
    assert measured()[1] == 2
    assert kept.read() is not None
    assert KeptMeasurement(Runs(copied_run), 0, "all").read() is None  # of another setting


def test_fqe_is_computed_only_for_checkpoints_that_have_no_value_or_have_changed(copied_run, monkeypatch):
    asked = []

    def evaluated(runs, steps, data):
        asked.append(list(steps))
        return np.array([[100.0 * number + step for step in steps] for number in range(len(runs))])

    monkeypatch.setattr("dr3.reports.kept.fqe_of_runs", evaluated)
    runs = Runs(copied_run)
    first, *others = runs.checkpoints
    expected = [[100 * number + step for step in runs.checkpoints] for number in range(len(runs))]
    assert kept_fqe(runs, others, None).tolist() == [row[1:] for row in expected]
    for _ in range(2):
        assert kept_fqe(runs, runs.checkpoints, None).tolist() == expected
    assert asked == [others, [first]]
    with np.load(path := runs.folder.checkpoints.path(others[-1])) as stored:
        weights = {name: 2 * values for name, values in stored.items()}
    np.savez(path, **weights)
    kept_fqe(runs, runs.checkpoints, None)
    assert asked[2:] == [[others[-1]]]
    monkeypatch.setattr("dr3.reports.kept._code", lambda: "another version")
    kept_fqe(runs, runs.checkpoints, None)
    assert asked[3:] == [runs.checkpoints]


def test_kept_values_are_not_of_another_table(copied_run, monkeypatch):
    runs = Runs(copied_run)
    monkeypatch.setattr("dr3.reports.kept.fqe_of_runs", lambda runs, steps, data: np.zeros((len(runs), len(steps))))
    kept_fqe(runs, runs.checkpoints, None)
    with pytest.raises(UserError, match=r"is not what .* was trained on"):
        kept_fqe(runs, runs.checkpoints, load("grid16smoothobs:size=8:seed=77", discount=0.9))
