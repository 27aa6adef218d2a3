"""The command as a user runs it: stopped, killed, and started again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dr3.cli import carry_out, invoke
from dr3.runs import Runs, digest
from dr3.runs.results import read_results
from dr3.sweeps import read_grid

GRID = """
steps = 1200
data = ["grid16smoothobs:seed=0", "grid16smoothobs:seed=1"]
regularizers = "dr3"
coefficients = [0.1]
metrics_every = 4
evaluate_every = 600

[methods.dqn]
hidden = [8]
batch_size = 8
target_period = 7
"""


@pytest.mark.usefixtures("shared_programs")
def test_the_workers_save_and_a_rerun_does_the_rest(tasks, undisturbed, taken_up, wait_for, tmp_path, capsys):
    file, out = tmp_path / "grid.toml", tmp_path / "out"
    file.write_text(GRID)
    assert read_grid(file, carry_out) == tasks[:2]
    words = ["sweep", str(file), "--out", str(out), "--workers", "1"]
    first, second = (out / task.name for task in tasks[:2])
    for folder, number, code in ((first, signal.SIGKILL, -signal.SIGKILL), (second, signal.SIGINT, 130)):
        command = [sys.executable, "-m", "dr3", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as sweep:
            worker = Path("/proc") / taken_up(folder, 100)[0]
            sweep.send_signal(number)
            said = sweep.communicate()[0]
        assert sweep.returncode == code
        assert "Traceback" not in said
        assert ("Stopped, everything saved; the same command goes on from there." in said) == (code == 130)
        # Also a worker whose sweep was killed saves and leaves.
        wait_for(lambda worker=worker: not worker.exists(), "the end of the worker")
        assert "everything saved" in (folder / "log.txt").read_text()
        assert 100 <= Runs(folder).status["step"] < tasks[0].steps
    assert Runs(first).status["finished"]

    assert invoke(words) == 0
    said = capsys.readouterr()
    assert f"{first.name}: there\n" in said.err
    assert f"{second.name}: finished\n" in said.err
    assert "dqn+dr3:0.1" in said.out
    cells = {(row.algorithm, row.task, row.step) for row in read_results(out / "results.jsonl")}
    assert cells == {("dqn+dr3:0.1", task.data, step) for task in tasks[:2] for step in (600, 1200)}
    for task in tasks[:2]:
        assert digest(Runs(out / task.name)) == digest(undisturbed.runs(task))
