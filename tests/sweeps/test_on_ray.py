"""A real Ray cluster of several nodes, on this machine."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import dr3
from dr3.errors import UserError
from dr3.runs import Runs, digest
from dr3.sweeps import OnRay, Task, run_tasks
from dr3.sweeps.on_ray import _connected
from dr3.sweeps.task import write_record

# Ray starts the nodes of a test cluster by fork and exec, which JAX, at work in this process by then, warns of.
pytestmark = pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning")

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is an extra")


@pytest.fixture(scope="module")
def cluster(shared_programs):
    """A head that takes no tasks, and two nodes that take one at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        from ray.cluster_utils import Cluster

        # A lost node is noticed at once: it refuses the connection. One that is merely slow has time to answer.
        checks = {"health_check_period_ms": 200, "health_check_timeout_ms": 10_000, "health_check_failure_threshold": 3}
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": checks}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        yield cluster
        cluster.shutdown()


@needs_ray
def test_a_stop_saves_what_is_running(cluster, tasks, undisturbed, taken_up, tmp_path):
    engine, folder = OnRay(cluster.address), tmp_path / tasks[0].name
    write_record(folder, tasks[0])
    engine.start(folder)
    taken_up(folder, 100)
    engine.close()
    assert "everything saved" in (folder / "log.txt").read_text()
    assert 100 <= Runs(folder).status["step"] < tasks[0].steps


GRID = """
steps = 1200
data = "grid16smoothobs:seed=0"
regularizers = "dr3"
coefficients = [0.1]
metrics_every = 4
evaluate_every = 600

[methods.dqn]
hidden = [8]
batch_size = 8
target_period = 7
"""


@needs_ray
@pytest.mark.slow
def test_sigterm_saves_and_says_so(cluster, tasks, taken_up, foreign_modules, tmp_path):
    """Ray has a handler of its own for it, which would abort. Nor is a module in the current folder run, on no node."""
    (tmp_path / "grid.toml").write_text(GRID)
    command = [sys.executable, "-m", "dr3", "sweep", "grid.toml", "--out", "out", "--engine", "ray"]
    command += ["--address", cluster.address, "--plugin", "from_python_path"]
    path = os.pathsep.join([str(Path(dr3.__file__).parents[1]), "own"])
    pipes: dict = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, **pipes) as sweep:
        folder = tmp_path / "out" / tasks[0].name
        taken_up(folder, 100)
        sweep.send_signal(signal.SIGTERM)
        said = sweep.communicate()[0]
    assert sweep.returncode == 143, said
    assert "Stopped, everything saved; the same command goes on from there." in said
    assert "Traceback" not in said
    assert "everything saved" in (folder / "log.txt").read_text()
    assert 100 <= Runs(folder).status["step"] < tasks[0].steps
    assert not foreign_modules.exists()


PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
import dr3

@dr3.register
@dataclass(frozen=True)
class Mine(dr3.DQN):
    name: ClassVar[str] = "on-a-node"
"""


@needs_ray
def test_a_node_imports_what_the_sweeping_process_has_registered(cluster, tmp_path, monkeypatch):
    (tmp_path / "method_for_nodes.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    method = importlib.import_module("method_for_nodes").Mine(hidden=(8,), batch_size=8)
    task = Task("grid16smoothobs", method, steps=4, env=None)
    outcome = run_tasks([task], tmp_path / "runs", engine=OnRay(cluster.address), show=False)
    assert outcome.failures == {}
    assert outcome.runs(task).members[0].method == method


@needs_ray
def test_a_killed_worker_and_a_lost_node_change_no_result(cluster, tasks, undisturbed, taken_up, tmp_path):
    nodes = {node.node_id: node for node in cluster.list_all_nodes()}
    first, second, _ = (tmp_path / task.name for task in tasks)
    lost = []

    def halted(folder):
        """The process and the node that a task is on, held in the middle of it: there is time to disturb it."""
        words = taken_up(folder, 100)
        os.kill(int(words[0]), signal.SIGSTOP)
        return int(words[0]), words[-1].rstrip(")")

    def kill_worker():
        worker, _ = halted(first)
        os.kill(worker, signal.SIGKILL)

    def lose_node():
        worker, node = halted(second)
        lost.append(node)
        cluster.remove_node(nodes[node], allow_graceful=False)
        # A node that is gone takes its workers with it at once; here they would outlive it by some seconds.
        os.kill(worker, signal.SIGKILL)

    # One watcher each: the two tasks run at the same time, and neither waits for what is done to the other.
    troubles = [threading.Thread(target=trouble) for trouble in (kill_worker, lose_node)]
    for trouble in troubles:
        trouble.start()
    outcome = run_tasks(tasks, tmp_path, engine=OnRay(cluster.address, save_every=0.0), show=False)
    for trouble in troubles:
        trouble.join()
    assert outcome.failures == {}
    assert outcome.finished == tasks
    for folder in (first, second):
        log = (folder / "log.txt").read_text()
        assert log.count("--- process") == 2
        assert "Resuming from step" in log
    log = (second / "log.txt").read_text()
    assert log.index(lost[0]) == log.index("(Ray node ") + len("(Ray node ")
    assert log.count(lost[0]) == 1
    for task in tasks:
        assert digest(outcome.runs(task)) == digest(undisturbed.runs(task))


@needs_ray
def test_what_is_no_address_is_refused(tasks, tmp_path):
    with pytest.raises(UserError, match=r"There is no Ray cluster at nonsense:1:2 \(Invalid address format"):
        run_tasks(tasks, tmp_path, engine=OnRay("nonsense:1:2"), show=False)


def test_what_cannot_be_an_engine_is_refused(monkeypatch, tasks, tmp_path):
    with pytest.raises(UserError, match="at least 1 cpu and no fewer than 0 gpus, not 0 and 0"):
        OnRay(cpus=0)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'dr3\[ray\]'"):
        run_tasks(tasks, tmp_path, engine=OnRay(), show=False)


def ray_that(answer: BaseException) -> SimpleNamespace:
    def init(*settings, **named):
        raise answer

    return SimpleNamespace(init=init)


def test_a_stop_while_ray_starts_is_exit_code_143(monkeypatch, capsys):
    """Ray's own handler of SIGTERM, which is there until it has started, leaves with the signal's number."""
    monkeypatch.setitem(sys.modules, "ray", ray_that(SystemExit(signal.SIGTERM)))
    with pytest.raises(SystemExit) as stopped:
        _connected(None)
    assert stopped.value.code == 143
    assert "nothing had begun" in capsys.readouterr().err


def test_ray_that_does_not_start_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", ray_that(Exception("The current node timed out during startup.\nmore")))
    with pytest.raises(UserError, match=r"Ray did not start here \(The current node timed out during startup\)"):
        _connected(None)
