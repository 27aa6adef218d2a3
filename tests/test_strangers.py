"""What a stranger sends (a log, a run folder, a folder full of files) runs no code and writes nowhere."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dr3
from dr3 import cores
from dr3.data import load_recorded, write, write_dqn_replay
from dr3.data.gate import cache_beside
from dr3.diagnostics import reinitialisation
from dr3.envs import known_world
from dr3.errors import UserError
from dr3.files import write_json
from dr3.registry import Registry
from dr3.runs import Runs
from dr3.runs.checkpoints import Checkpoints
from dr3.sweeps import InProcess, Task, run_tasks
from dr3.sweeps.task import read_record

EVIL = "import pathlib\npathlib.Path({mark!r}).write_text('ran')\n"


@pytest.fixture
def mark(tmp_path, monkeypatch):
    """A module in the working folder that leaves a mark if anything imports it."""
    (tmp_path / "evil.py").write_text(EVIL.format(mark=str(tmp_path / "mark")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # even where Python would find it
    yield tmp_path / "mark"
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "name",
    [
        "evil:CartPole-v1",
        "evil:evil:CartPole-v1",
        'Ant-v5{"xml_file": "/somewhere/evil.xml"}',
        'Ant-v5{"xml_file": "evil"}',
        'CartPole-v1{"max_episode_steps": -1}',
        'CartPole-v1{"options": {"a": 1}}',
        'CartPole-v1{"render_mode": "human"}',
        'Hopper-v5{"frame_skip": 1000000000}',
        'Hopper-v5{"width": 1000000000}',
        'GymV21Environment-v0{"env_id": "evil:CartPole-v1"}',
        'CartPole-v1{"a"',
        "CartPole-v1{" + "[" * 100_000,
        "grid16smoothobs:cache=/somewhere",
        "nothing-v0",
        "",
    ],
)
def test_a_file_names_no_world_that_imports_or_leads_elsewhere(name, mark, logged):
    with pytest.raises(UserError):
        known_world(name)
    with pytest.raises(UserError, match=r"world|setting"):
        dr3.train(dataclasses.replace(logged, world=name or "evil:x"), dr3.DQN(), steps=1, progress=False)


@pytest.mark.parametrize(
    "name", ["CartPole-v1", "grid16smoothobs:lava=0.1", "minatar/breakout", "atari/Pong", "Hopper-v5", "ant/d4rl"]
)
def test_known_worlds_are_known(name):
    assert known_world(name) == name


@pytest.mark.parametrize("name", [3, None, b"CartPole-v1"])
def test_what_is_no_name_is_no_world(name):
    with pytest.raises(UserError, match="which is no name"):
        known_world(name)


def test_plain_arguments_are_kept():
    pytest.importorskip("gymnasium")
    assert known_world('CartPole-v1{"sutton_barto_reward": true}')
    assert known_world('Hopper-v5{"frame_skip": 4, "render_mode": null, "healthy_z_range": [0.7, Infinity]}')
    pytest.importorskip("gymnasium_robotics")
    assert known_world('FrankaKitchen-v1{"tasks_to_complete": ["microwave", "kettle"], "max_episode_steps": 280}')
    assert known_world('AntMaze_UMaze-v4{"maze_map": [[1, "r"], [0, "g"]], "reward_type": "sparse"}')


def test_the_world_of_a_log_and_of_a_run_runs_no_code(mark, tmp_path, logged, copied_run):
    write(tmp_path / "a.npz", dataclasses.replace(logged, world="evil:CartPole-v1"))
    with pytest.raises(UserError, match="world"):
        dr3.train(dr3.load(tmp_path / "a.npz"), dr3.DQN(), steps=1, progress=False)
    change(copied_run, evaluation={"kind": "rollouts", "env": "evil:CartPole-v1", "episodes": 1})
    with pytest.raises(UserError, match="world"):
        reinitialisation._evaluator(Runs(copied_run), None, 1)
    change(copied_run, evaluation={"kind": "rollouts", "env": 3})
    with pytest.raises(UserError, match="no name"):
        reinitialisation._evaluator(Runs(copied_run), None, 1)


def change(run: Path, **fields) -> None:
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | fields))


def test_minari_names_no_module(mark, tmp_path, logged):
    pytest.importorskip("h5py")
    write(tmp_path / "set", logged.rows(slice(0, 1)), form="minari")
    metadata = tmp_path / "set" / "data" / "metadata.json"
    stored = json.loads(metadata.read_text())
    metadata.write_text(json.dumps(stored | {"dr3": {}, "env_spec": json.dumps({"id": "evil:CartPole-v1"})}))
    with pytest.raises(UserError, match="world"):
        dr3.train(dr3.load(tmp_path / "set"), dr3.DQN(), steps=1, progress=False)


def test_a_recorded_source_writes_nowhere(tmp_path):
    write_dqn_replay(
        tmp_path / "game",
        frames=np.zeros((20, 2, 2), np.uint8),
        actions=np.zeros(20, np.int32),
        rewards=np.zeros(20, np.float32),
        terminals=np.zeros(20, np.bool_),
        rows_per_file=20,
    )
    word = f"{tmp_path / 'game'}:cache={tmp_path / 'elsewhere'}"
    with pytest.raises(UserError, match="only you may say where"):
        load_recorded(word, discount=0.9)
    assert not (tmp_path / "elsewhere").exists()
    mine = dr3.load(word, discount=0.9)
    assert load_recorded(word, discount=0.9).fingerprint() == mine.fingerprint()  # there by now


def test_a_class_that_a_run_names_is_not_imported(mark, copied_run):
    config = json.loads((copied_run / "config.json").read_text())
    config["members"][0]["method"] |= {"name": "mine", "class": "evil:Mine"}
    (copied_run / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="--plugin evil"):
        Runs(copied_run)
    for home in ("os:system", "subprocess:Popen", "sys:modules", "evil", 3, ["a"], "::", "os.path"):
        config["members"][0]["method"]["class"] = home
        (copied_run / "config.json").write_text(json.dumps(config))
        with pytest.raises(UserError):
            Runs(copied_run)
    assert isinstance(dr3.methods.METHODS, Registry)


def test_links_in_a_run_folder_are_not_written_through(copied_run, tmp_path, logged):
    precious = tmp_path / "precious.txt"
    for name in (".lock", "metrics.jsonl", "config.json", "state", "checkpoints"):
        run = tmp_path / f"run-{name}"
        run.mkdir()
        precious.write_text("keep")
        (run / name).symlink_to(precious)
        with pytest.raises(UserError, match="is a link"):
            dr3.train(logged, dr3.DQN(hidden=(4,)), steps=1, env=None, out=run, progress=False)
        assert precious.read_text() == "keep"


def test_what_is_unfinished_is_not_written_through_a_link(tmp_path):
    from dr3.files import write_text

    precious = tmp_path / "precious.txt"
    precious.write_text("keep")
    (tmp_path / f".a.txt.{os.getpid()}.unfinished").symlink_to(precious)
    write_text(tmp_path / "a.txt", "new")
    assert (precious.read_text(), (tmp_path / "a.txt").read_text()) == ("keep", "new")


needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no cores can be claimed here")


@needs_affinity
def test_claims_are_in_a_folder_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, given: None)
    folder = tmp_path / f"dr3-cores-{os.getuid()}"
    cores.claim_cores(1)
    assert folder.stat().st_mode & 0o777 == 0o700
    os.close(cores._CLAIMED.pop())

    precious = tmp_path / "precious.txt"
    precious.write_text("keep")
    for file in folder.iterdir():
        file.unlink()
    for core in os.sched_getaffinity(0):
        (folder / str(core)).symlink_to(precious)
    cores.claim_cores(1)  # nothing is claimed, and nobody's file is opened
    assert cores._CLAIMED == []
    assert precious.read_text() == "keep"
    for file in folder.iterdir():
        file.unlink()
        file.write_text("longer")
    cores.claim_cores(1)
    os.close(cores._CLAIMED.pop())
    assert {file.read_text() for file in folder.iterdir()} == {"longer"}


@needs_affinity
def test_claims_are_not_made_in_somebody_elses_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder = tmp_path / f"dr3-cores-{os.getuid()}"
    folder.symlink_to(tmp_path)
    cores.claim_cores(1)
    folder.unlink()
    folder.mkdir()
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    folder.rename(tmp_path / f"dr3-cores-{other}")
    cores.claim_cores(1)
    assert cores._CLAIMED == []
    assert not list(tmp_path.glob("*/*"))


GRID = """
steps = 2
data = "grid16smoothobs"
[methods.dqn]
hidden = [4]
batch_size = 4
"""


@pytest.mark.slow
def test_modules_in_the_current_folder_are_not_run(foreign_modules, tmp_path):
    """Neither by `python -m dr3` nor by its workers; what PYTHONPATH names is found all the same."""
    (tmp_path / "grid.toml").write_text(GRID)
    path = os.pathsep.join([str(Path(dr3.__file__).parents[1]), "own"])
    words = ["sweep", "grid.toml", "--out", "out", "--workers", "1", "--plugin", "from_python_path"]
    command = [sys.executable, "-m", "dr3", *words]
    ended = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert not foreign_modules.exists()


@pytest.mark.parametrize("name", ["log.txt", "."])
def test_a_sweep_does_not_write_through_links(tmp_path, name):
    """Its folder may be a stranger's too: neither a task's log nor its folder leads elsewhere."""
    task = Task("grid16smoothobs", dr3.DQN(hidden=(4,), batch_size=4), steps=1, env=None)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious.txt").write_text("keep")
    folder = tmp_path / "out" / task.name
    folder.parent.mkdir()
    if name == ".":
        folder.symlink_to(elsewhere)
    else:
        folder.mkdir()
        (folder / name).symlink_to(elsewhere / "precious.txt")
    with pytest.raises(UserError, match="is a link"):
        run_tasks([task], tmp_path / "out", engine=InProcess(), show=False)
    assert [file.name for file in elsewhere.iterdir()] == ["precious.txt"]
    assert (elsewhere / "precious.txt").read_text() == "keep"


def test_no_cache_is_unpacked_through_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ".dr3-cache").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link"):
        cache_beside(tmp_path / "data")
    assert cache_beside(tmp_path) == tmp_path / ".dr3-cache"


def test_the_record_of_a_task_imports_nothing(mark, tmp_path):
    record = {"kind": "Preparation", "makes": "a", "function": "evil:f", "arguments": {}, "needs": [], "also": []}
    write_json(tmp_path / "task.json", record)
    assert read_record(tmp_path).name.startswith("prepare-a-")
    for change in ({"kind": "Other"}, {"needs": None}, {"odd": 1}, {"kind": "Task", "method": 3, "regularizers": []}):
        write_json(tmp_path / "task.json", record | change)
        with pytest.raises(UserError, match="no task that this dr3 knows"):
            read_record(tmp_path)


@pytest.mark.slow
def test_processes_that_python_starts_do_not_look_in_the_current_folder(tmp_path):
    """Drawers are acted in such ones."""
    (tmp_path / "signal.py").write_text(EVIL.format(mark=str(tmp_path / "mark")))
    (tmp_path / "here").mkdir()
    script = tmp_path / "here" / "script.py"
    script.write_text(
        "import multiprocessing, os\n"
        "from dr3.collect.processes import safe_path\n"
        "if __name__ == '__main__':\n"
        "    with safe_path():\n"
        "        one = multiprocessing.get_context('spawn').Process(target=os.getpid)\n"
        "        one.start()\n"
        "        one.join()\n"
        "    assert 'PYTHONSAFEPATH' not in os.environ\n"
        "    raise SystemExit(one.exitcode)\n"
    )
    ended = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "mark").exists()


def test_a_checkpoint_that_unpacks_to_more_than_it_is_is_not_unpacked(tmp_path):
    checkpoints, tree = Checkpoints(tmp_path), {"a": np.zeros(2**16, np.float32)}
    checkpoints.save(1, tree)
    assert checkpoints.intact(1)
    np.savez_compressed(checkpoints.path(1), a=tree["a"])
    assert not checkpoints.intact(1)
    with pytest.raises(ValueError, match="cannot be read"):
        checkpoints.restore(1, tree)
