"""The real thing: processes that are stopped and killed, and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from dr3.data import write_npz
from dr3.runs import Runs, digest

STEPS, EVERY = 1500, 10


@pytest.fixture(scope="module")
def start(logged, tmp_path_factory):
    """Start a training in a process of its own; all share one folder of compiled programs."""
    folder = tmp_path_factory.mktemp("kill")
    write_npz(folder / "logged.npz", logged)
    settings = f"--steps {STEPS} --metrics-every {EVERY} --evaluate-every 500 --seeds 2 --regularizer dr3:0.1"
    network = "--hidden 8 --batch-size 8 --target-period 7"
    caching = {"JAX_COMPILATION_CACHE_DIR": str(folder / "xla"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}

    def start(out, chunk):
        words = f"train dqn --data {folder / 'logged.npz'} --out {out} {settings} {network} --chunk {chunk}"
        return subprocess.Popen(
            [sys.executable, "-m", "dr3", *words.split()],
            env={**os.environ, **caching},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def interrupt(process, metrics, lines, number):
    """Send a signal once the run has written so many lines: its exit code, and what it said."""
    while process.poll() is None and (not metrics.exists() or metrics.read_bytes().count(b"\n") < lines):
        time.sleep(0.002)
    process.send_signal(number)
    said = process.communicate()[1]
    return process.returncode, said


def test_stopped_and_killed_and_resumed_it_ends_as_if_nothing_had_happened(start, tmp_path):
    whole = start(tmp_path / "whole", 400)
    said = whole.communicate()[1]
    assert whole.returncode == 0, said

    out = tmp_path / "out"
    for lines, chunk, number, code in (
        (7, 1, signal.SIGKILL, -signal.SIGKILL),  # before there is any state to go on from
        (40, 3, signal.SIGTERM, 143),
        (90, 1, signal.SIGKILL, -signal.SIGKILL),
        (130, 2, signal.SIGINT, 130),
        (181, 5, signal.SIGKILL, -signal.SIGKILL),
    ):
        returned, said = interrupt(start(out, chunk), out / "metrics.jsonl", lines, number)
        assert returned == code, said
        assert "Traceback" not in said
        if number != signal.SIGKILL:
            assert "everything saved; the same command goes on from there" in said
            assert Runs(out).status["step"] >= EVERY * (lines // 2 - 1)
        assert not Runs(out).status["finished"]

    last = start(out, 1000)
    said = last.communicate()[1]
    assert last.returncode == 0, said
    assert "Resuming from step" in said
    runs = Runs(out)
    assert runs.status == {"step": STEPS, "finished": True, "diverged": {}}
    assert digest(runs) == digest(Runs(tmp_path / "whole"))
