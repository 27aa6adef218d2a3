from __future__ import annotations

import json

import numpy as np
import pytest

from dr3.reports import checkup
from dr3.reports.checkup import Checkup
from dr3.reports.kept import Kept
from dr3.training import Runs


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
    kept = Kept(Runs(copied_run), 0, gradients=False)
    for damage in (b"", kept.path.read_bytes()[:-40], b"PK no archive"):
        kept.path.write_bytes(damage)
        assert kept.read() is None
    assert measured()[1] == 2
    assert kept.read() is not None
    assert Kept(Runs(copied_run), 0, gradients=True).read() is None  # of another setting
