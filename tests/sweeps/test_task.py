from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import sys
from pathlib import Path

import pytest

from dr3.data import load
from dr3.errors import UserError
from dr3.methods import CQL
from dr3.regularizers import DR3
from dr3.runs.config import RunConfig
from dr3.runs.folder import RunFolder
from dr3.sweeps import Preparation, Task
from dr3.sweeps.task import read_record, write_record


def test_it_comes_back_from_json_as_it_was(tmp_path):
    task = Task(
        "a.npz:fraction=0.5", CQL(hidden=(8, 4)), (None, DR3(0.1, absolute=True)), (3, 5), env=None, needs=("b",)
    )
    made = Preparation("a.npz", shutil.copyfile, {"src": "b.npz"}, needs=("c",), also=("b.npz",))
    for number, job in enumerate((task, made)):
        write_record(tmp_path / str(number), job)
        assert read_record(tmp_path / str(number)).to_json() == job.to_json()


def test_what_is_being_made_is_not_made_a_second_time_at_once(tmp_path):
    made = tmp_path / "made"
    one = Preparation(str(made), Path.mkdir, {"self": made})
    with RunFolder(tmp_path / "job").locked(), pytest.raises(UserError, match="in use by another process"):
        one.run(tmp_path / "job")
    assert not made.exists()
    one.run(tmp_path / "job")
    assert made.exists()
    one.run(tmp_path / "job")  # a second mkdir would fail


def test_a_function_that_makes_nothing_is_said(tmp_path):
    with pytest.raises(UserError, match=r"builtins:dict ended without writing maze\.npz"):
        Preparation("maze.npz", dict, {}).run(tmp_path / "job")


def stop() -> None:
    sys.exit(128 + signal.SIGTERM)


def test_a_signal_to_stop_passes_through_a_preparation(tmp_path):
    with pytest.raises(SystemExit) as stopped:
        Preparation("maze.npz", stop, {}).run(tmp_path / "job")
    assert stopped.value.code == 143


def test_the_name_follows_from_the_content(tiny):
    assert dataclasses.replace(tiny).name == tiny.name
    assert tiny.name.startswith("dqn-grid16smoothobs-")
    alone = dataclasses.replace(tiny, regularizers=(DR3(0.03, stop_gradient="next"),), data="logs/some data.npz")
    assert alone.name.startswith("dqn+dr3_0.03_stop_gradient=next-some_data-")
    # Longer is the same run, and so is one that waits for another.
    assert dataclasses.replace(tiny, steps=700, needs=("x",)).name == tiny.name
    changes = {
        "data": "grid16randomsparse",
        "method": dataclasses.replace(tiny.method, learning_rate=0.5),
        "regularizers": (None,),
        "seeds": (1,),
        "env": None,
        "episodes": 3,
        "metrics_every": 5,
        "evaluate_every": 5,
        "init_from": "run@5",
    }
    others = {dataclasses.replace(tiny, **{key: value}).name for key, value in changes.items()}
    assert len(others | {tiny.name}) == len(changes) + 1


@pytest.fixture
def tiny(tasks):
    return dataclasses.replace(tasks[0], data="grid16smoothobs", regularizers=(None, DR3(0.1)))


@pytest.fixture
def there(tiny, tmp_path):
    """A folder that says it holds this task, finished."""
    config = RunConfig.of(load(tiny.data), tiny.members, steps=tiny.steps)
    (tmp_path / "config.json").write_text(json.dumps(config.to_json()))
    (tmp_path / "status.json").write_text(json.dumps({"finished": True, "step": tiny.steps}))
    return tmp_path


@pytest.mark.parametrize(
    ("change", "finished"),
    [
        ({}, True),
        ({"steps": 601}, False),
        ({"data": "grid16randomsparse"}, False),
        ({"seeds": (0, 1)}, False),
        ({"regularizers": (None, DR3(0.2))}, False),
    ],
)
def test_finished_is_the_end_of_this_very_run(there, tiny, change, finished):
    assert dataclasses.replace(tiny, **change).finished(there) == finished


@pytest.mark.parametrize("name", ["config.json", "status.json"])
@pytest.mark.parametrize("content", ["", "{}", "[]", '{"step": 1200'])
def test_a_run_whose_record_is_damaged_is_not_finished(there, tiny, name, content):
    (there / name).write_text(content)
    assert not tiny.finished(there)


def test_a_run_on_its_way_is_not_finished(there, tiny):
    (there / "status.json").write_text(json.dumps({"finished": False, "step": tiny.steps}))
    assert not tiny.finished(there)
    (there / "status.json").unlink()
    assert not tiny.finished(there)
