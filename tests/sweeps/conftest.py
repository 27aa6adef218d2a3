from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dr3.methods import DQN
from dr3.regularizers import DR3
from dr3.sweeps import Local, SweepResult, Task, run_tasks
from dr3.sweeps.board import last_step

# Many short chunks, and seconds of them, so that there is a middle to be killed in; all are one compiled program.
STEPS = 1200
METHOD = DQN(hidden=(8,), batch_size=8, target_period=7)
TASKS = [
    Task(f"grid16smoothobs:seed={n}", METHOD, (DR3(0.1),), (0,), STEPS, metrics_every=4, evaluate_every=STEPS // 2)
    for n in range(3)
]


@pytest.fixture(scope="session")
def tasks() -> list[Task]:
    return TASKS


@pytest.fixture(scope="package", autouse=True)
def shared_programs(tmp_path_factory):
    """All worker processes find what one of them has compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("xla")))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        yield


@pytest.fixture(scope="package")
def undisturbed(shared_programs, tmp_path_factory) -> SweepResult:
    """All tasks, from beginning to end on the local engine."""
    outcome = run_tasks(TASKS, tmp_path_factory.mktemp("undisturbed"), engine=Local(1), show=False)
    assert outcome.failures == {}
    return outcome


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.005)


def taken_up(folder: Path, step: int) -> list[str]:
    """Wait until the run in a folder has come to a step: the words of the log on the process that is at it."""
    wait_for(lambda: last_step(folder / "metrics.jsonl") >= step, f"{folder} at step {step}")
    return (folder / "log.txt").read_text().rpartition("--- process ")[2].splitlines()[0].split()


@pytest.fixture(name="taken_up")
def _taken_up():
    return taken_up


@pytest.fixture(name="wait_for")
def _wait_for():
    return wait_for
