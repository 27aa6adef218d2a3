from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from dr3.errors import UserError
from dr3.sweeps import InProcess, Preparation, run_tasks, seconds_of
from dr3.sweeps.timing import timed


def test_only_what_did_not_come_to_be_is_lacking(tasks, tmp_path):
    (tmp_path / "there.npz").touch()
    there = Preparation(str(tmp_path / "there.npz"), len, {})
    failing = Preparation(str(tmp_path / "never.npz"), len, {})
    orphan = dataclasses.replace(tasks[0], needs=(there.name, failing.name))
    outcome = run_tasks([there, failing, orphan], tmp_path / "out", engine=InProcess(), show=False)
    assert str(outcome.failures[orphan.name]) == f"it needs what did not come to be: {failing.name}."
    assert (tmp_path / "out" / failing.name / "seconds.json").exists()
    assert str(outcome.failures[failing.name]).endswith(f". Its log: {tmp_path / 'out' / failing.name / 'log.txt'}")


def test_a_file_cannot_be_the_out_folder(tasks, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"out cannot be a folder: .*/file is a file"):
        run_tasks(tasks, tmp_path / "file" / "out", engine=InProcess(), show=False)


@pytest.mark.parametrize("note", ["", "{}", '{"seconds": "many"}'])
def test_a_damaged_note_of_the_time_counts_as_none(tmp_path, note):
    (tmp_path / "seconds.json").write_text(note)
    assert seconds_of(tmp_path) == 0.0


def test_time_adds_up_and_is_kept_when_work_breaks_off(tmp_path, monkeypatch):
    clock = iter([0.0, 3.0, 10.0, 14.5])
    monkeypatch.setattr("dr3.sweeps.timing.time", SimpleNamespace(monotonic=lambda: next(clock)))
    with timed(tmp_path):
        pass
    with pytest.raises(KeyboardInterrupt), timed(tmp_path):
        raise KeyboardInterrupt
    assert seconds_of(tmp_path) == 7.5
