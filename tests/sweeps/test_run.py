from __future__ import annotations

import dataclasses

from dr3.sweeps import InProcess, Preparation, run_tasks


def test_only_what_did_not_come_to_be_is_lacking(tasks, tmp_path):
    (tmp_path / "there.npz").touch()
    there = Preparation(str(tmp_path / "there.npz"), "builtins:len", {})
    failing = Preparation(str(tmp_path / "never.npz"), "builtins:len", {})
    orphan = dataclasses.replace(tasks[0], needs=(there.name, failing.name))
    outcome = run_tasks([there, failing, orphan], tmp_path / "out", engine=InProcess(), show=False)
    assert str(outcome.failures[orphan.name]) == f"it needs what did not come to be: {failing.name}."
    assert str(outcome.failures[failing.name]).endswith(f". Its log: {tmp_path / 'out' / failing.name / 'log.txt'}")
