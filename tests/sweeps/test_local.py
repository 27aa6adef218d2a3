from __future__ import annotations

import dataclasses
import os
import re
import shutil
import signal
import threading

import pytest

from dr3.data import load, write_npz
from dr3.errors import UserError
from dr3.runs import digest
from dr3.sweeps import Local, Preparation, run_tasks


def test_a_task_whose_worker_was_killed_goes_on_and_ends_as_if_nothing_had_happened(
    tasks, undisturbed, taken_up, tmp_path
):
    task, folder = tasks[0], tmp_path / tasks[0].name
    killer = threading.Thread(target=lambda: os.kill(int(taken_up(folder, 100)[0]), signal.SIGKILL))
    killer.start()
    outcome = run_tasks([task], tmp_path, engine=Local(1, save_every=0.0), show=False)
    killer.join()
    assert outcome.failures == {}
    assert outcome.finished == [task]
    log = (folder / "log.txt").read_text()
    assert "attempt 1 of 4: the worker was killed by SIGKILL" in log
    assert "Resuming from step" in log
    assert digest(outcome.runs(task)) == digest(undisturbed.runs(task))


def test_what_fails_is_told_with_its_log_and_the_others_go_on(tasks, tmp_path):
    tiny = tasks[0]
    write_npz(tmp_path / "logged.npz", load(tiny.data))
    copy, never = str(tmp_path / "copy.npz"), str(tmp_path / "never.npz")
    copying = Preparation(copy, shutil.copyfile, {"src": str(tmp_path / "logged.npz"), "dst": copy})
    failing = Preparation(never, shutil.copyfile, {"src": never, "dst": never})
    idle = Preparation(str(tmp_path / "nothing.npz"), len, {})
    dying = Preparation(str(tmp_path / "dead.npz"), os._exit, {"status": 3})
    short = dataclasses.replace(tiny, steps=8, evaluate_every=8)
    good = dataclasses.replace(short, data=copy, needs=(copying.name,))
    orphan = dataclasses.replace(short, data=never, needs=(failing.name,))
    wrong = dataclasses.replace(short, env="no-such-world")
    out = tmp_path / "out"
    jobs = [good, orphan, wrong, dying, failing, idle, copying]
    outcome = run_tasks(jobs, out, engine=Local(1, retries=1), show=False)
    assert outcome.finished == [good]
    assert outcome.runs(good).config.data.source == copy
    reasons = {name: failure.reason for name, failure in outcome.failures.items()}
    assert reasons == {
        orphan.name: f"it needs what did not come to be: {failing.name}",
        wrong.name: reasons[wrong.name],
        dying.name: "its worker ended with exit code 3, at attempt 2 of 2",
        failing.name: f"FileNotFoundError: [Errno 2] No such file or directory: '{never}'",
        idle.name: reasons[idle.name],
    }
    assert "There is no world 'no-such-world'" in reasons[wrong.name]
    assert "TypeError" in reasons[idle.name]
    assert outcome.failures[orphan.name].log is None
    log = outcome.failures[failing.name].log
    assert log is not None
    assert "Traceback" in log.read_text()

    # A rerun does what is missing and nothing else.
    before = {job.name: (out / job.name / "log.txt").stat().st_mtime_ns for job in (good, copying)}
    again = run_tasks([good, copying], out, show=False)
    assert again.failures == {}
    assert {name: (out / name / "log.txt").stat().st_mtime_ns for name in before} == before


def test_what_cannot_be_a_sweep_is_refused(tasks, tmp_path):
    tiny = tasks[0]
    with pytest.raises(UserError, match=re.escape(f"Two tasks of the sweep are the same: {tiny.name}.")):
        run_tasks([tiny, tiny], tmp_path)
    with pytest.raises(UserError, match=re.escape(f"{tiny.name} needs nobody, which is not in the sweep.")):
        run_tasks([dataclasses.replace(tiny, needs=("nobody",))], tmp_path)
    other = dataclasses.replace(tiny, seeds=(1,), needs=(tiny.name,))
    with pytest.raises(UserError, match="need each other in a circle"):
        run_tasks([other, dataclasses.replace(tiny, needs=(other.name,))], tmp_path)
    with pytest.raises(UserError, match="workers must be at least 1, not 0"):
        Local(0)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_seen_is_said(tmp_path):
    from dr3.sweeps.work import work

    error = work(tmp_path / "elsewhere", save_every=None)
    assert error is not None
    assert "choose an out folder on storage that all nodes see" in error
