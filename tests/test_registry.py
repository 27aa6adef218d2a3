from __future__ import annotations

import json
import subprocess
import sys
import types
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np
import pytest

import dr3
from dr3 import plugins, registry
from dr3.cli import invoke
from dr3.data import READERS, read
from dr3.envs import WORLDS, make_world
from dr3.errors import UserError
from dr3.hyperparameters import from_json, hyperparameters, to_json
from dr3.methods import METHODS
from dr3.regularizers import REGULARIZERS
from dr3.sweeps import Local, Task, run_tasks

MODULE = '''
from dataclasses import dataclass
from typing import ClassVar
import dr3

@dr3.register
@dataclass(frozen=True)
class Mine(dr3.DQN):
    """Mine."""
    name: ClassVar[str] = "mine"
'''


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch):
    """Each test begins with dr3's own alone."""
    monkeypatch.setattr(registry, "_added", {kind: {} for kind in registry._added})
    monkeypatch.setattr(plugins, "_remembered", {})
    monkeypatch.setattr(plugins, "_loaded", {})
    monkeypatch.delenv(plugins.VARIABLE, raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("my_methods", None)


@pytest.fixture
def my_methods(tmp_path, monkeypatch) -> Path:
    """A module of a user's own, in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_methods.py").write_text(MODULE)
    return tmp_path


def entry_point(monkeypatch, group, name, value):
    point = metadata.EntryPoint(name, value, group)
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: [point] if group == point.group else [])


def test_a_method_is_known_by_its_name_and_its_floats_are_leaves():
    @dr3.register
    @dataclass(frozen=True)
    class Half(dr3.DQN):
        name: ClassVar[str] = "half"
        share: float = 0.5

    assert METHODS["half"] is METHODS.lookup("half") is Half
    assert list(METHODS)[-1] == "half"
    assert len(jax.tree.leaves(Half())) == len(jax.tree.leaves(dr3.DQN())) + 1
    assert from_json(METHODS, to_json(Half(share=0.25))) == Half(share=0.25)


def test_a_regularizer_is_known_by_its_name():
    @dr3.register
    @dataclass(frozen=True)
    class Nothing:
        name: ClassVar[str] = "nothing"
        coefficient: float = 1.0

        def __call__(self, backup):
            return backup.phi.sum() * 0

    assert REGULARIZERS["nothing"] is Nothing
    assert "nothing" not in METHODS


def test_a_reader_is_known_by_its_ending(tmp_path, logged):
    @dr3.register(reader="txt")
    def read_text(path, *, discount, limit=None):
        return replace(logged, name=f"{Path(path).stem} {discount} {limit}")

    (tmp_path / "some.TXT").write_text("")
    assert ".txt" in READERS
    assert dr3.load(f"{tmp_path / 'some.TXT'}:limit=7", discount=0.5).name == "some 0.5 7"
    with pytest.raises(UserError, match=r"what can be read is .*\.txt"):
        read(tmp_path / "some.unknown")


def test_a_world_is_known_by_its_name():
    @dr3.register(world="mine/pole")
    def pole(*, render_mode=None):
        import gymnasium

        return gymnasium.make("CartPole-v1", render_mode=render_mode)

    assert "mine/pole" in WORLDS
    assert make_world("mine/pole").reset(seed=0)[0].shape == (4,)
    assert dr3.training.evaluator_for("mine/pole").describe()["env"] == "mine/pole"


@pytest.mark.parametrize(
    ("group", "kind", "name"),
    [("methods", METHODS, "far"), ("regularizers", REGULARIZERS, "far"), ("readers", READERS, ".far")],
)
def test_an_entry_point_is_imported_when_it_is_looked_up(monkeypatch, group, kind, name):
    entry_point(monkeypatch, f"dr3.{group}", "far", "far_away:Thing")
    assert name in kind
    assert list(kind)[-1] == name
    with pytest.raises(UserError, match=r"lives in far_away:Thing, which cannot be imported .*far_away"):
        kind.lookup(name)


def test_a_broken_entry_point_keeps_nobody_from_the_help(monkeypatch, capsys):
    entry_point(monkeypatch, "dr3.methods", "far", "far_away:Thing")
    assert invoke(["train"]) == 0
    listed = capsys.readouterr().out
    assert "far_away:Thing, which cannot be imported" in listed
    assert "Q-learning" in listed


def test_an_entry_point_may_lead_to_what_no_decorator_names(monkeypatch):
    home = types.ModuleType("my_methods")
    monkeypatch.setitem(sys.modules, "my_methods", home)
    exec(MODULE.replace("@dr3.register\n", ""), vars(home))
    entry_point(monkeypatch, "dr3.methods", "mine", "my_methods:Mine")
    assert jax.tree.leaves(METHODS["mine"]())
    entry_point(monkeypatch, "dr3.methods", "other", "my_methods:Mine")
    with pytest.raises(UserError, match=r"entry point 'other'.*whose name is not that"):
        METHODS.lookup("other")


def test_names_that_are_taken_are_refused(monkeypatch):
    with pytest.raises(UserError, match="method 'dqn' is one of dr3's own"):
        dr3.register(dataclass(frozen=True)(type("Mine", (dr3.DQN,), {})))
    dr3.register(reader=".txt")(lambda path: None)
    with pytest.raises(UserError, match=r"two of the reader '\.txt'"):
        dr3.register(reader=".txt")(read)
    entry_point(monkeypatch, "dr3.methods", "cql", "far_away:Thing")
    with pytest.raises(UserError, match="method 'cql' is one of dr3's own"):
        METHODS.lookup("unknown")


@pytest.mark.parametrize("thing", [3, int, read, dr3.Backup])
def test_what_is_no_plugin_is_refused(thing):
    with pytest.raises(UserError, match="neither a method nor a regularizer"):
        dr3.register(thing)


def test_an_unregistered_class_is_found_again_in_its_own_process():
    @dataclass(frozen=True)
    class Mine(dr3.DQN):
        pass  # even its name is DQN's

    record = json.loads(json.dumps(to_json(Mine())))
    assert type(from_json(METHODS, record)) is Mine
    assert type(from_json(METHODS, to_json(dr3.DQN()))) is dr3.DQN


@pytest.mark.parametrize(
    "home", ["subprocess:Popen", "os:system", "os:no_such", "no.such.module:Thing", "os", "my_methods:Mine"]
)
def test_a_record_imports_nothing_and_calls_no_function(home, my_methods):
    with pytest.raises(UserError, match=f"lives in the module {home.partition(':')[0]}, which is not imported unasked"):
        METHODS.class_of("mine", home)
    assert "my_methods" not in sys.modules
    with pytest.raises(UserError, match=r"was defined in a script \(__main__:Mine\)"):
        METHODS.class_of("mine", "__main__:Mine")


def test_a_class_that_has_moved_is_found_by_its_registered_name(my_methods):
    plugins.load_plugin("my_methods")
    assert METHODS.class_of("mine", "earlier:Mine") is METHODS["mine"]


def test_a_module_is_named_by_the_environment_or_by_a_flag(my_methods, monkeypatch, capsys):
    assert invoke(["train", "mine", "--data", "grid16smoothobs"]) == 2
    assert "no method 'mine'" in capsys.readouterr().err
    monkeypatch.setenv(plugins.VARIABLE, "my_methods")
    assert METHODS["mine"].__name__ == "Mine"
    assert invoke(["--plugin=no_such", "train"]) == 2
    assert "The plugin no_such cannot be imported (ModuleNotFoundError" in capsys.readouterr().err
    assert invoke(["train", "--plugin"]) == 2
    assert "--plugin needs the name of a module" in capsys.readouterr().err


def test_a_plugin_that_is_elsewhere_opens_no_working_folder(my_methods, tmp_path_factory, monkeypatch):
    """Where a stranger's data may lie, with a `jax_plugins/` beside them, which JAX would import."""
    data = tmp_path_factory.mktemp("data")
    monkeypatch.chdir(data)
    monkeypatch.syspath_prepend(my_methods)
    plugins.load_plugin("my_methods")
    assert str(data) not in sys.path
    monkeypatch.chdir(my_methods)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(my_methods)])
    sys.modules.pop("my_methods")
    monkeypatch.setattr(plugins, "_loaded", {})
    plugins.load_plugin("my_methods")  # nowhere else than here
    assert str(my_methods) in sys.path


@pytest.mark.slow
def test_the_flag_serves_a_command_in_a_process_of_its_own(my_methods):
    words = (
        "train --plugin my_methods mine --data grid16smoothobs:size=64 --hidden 8 --batch-size 8 --steps 4 --out run"
    )
    done = subprocess.run([sys.executable, "-m", "dr3", *words.split()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(Path("run/config.json").read_text())["members"][0]["method"]["class"] == "my_methods:Mine"


@pytest.mark.slow
def test_workers_import_what_the_sweeping_process_has_registered(my_methods, tmp_path_factory, monkeypatch):
    plugins.load_plugin("my_methods")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)  # where a worker would not find the module by itself
    task = Task("grid16smoothobs:size=64", METHODS["mine"](hidden=(8,), batch_size=8), steps=4, env=None)
    outcome = run_tasks([task], elsewhere / "runs", engine=Local(1), show=False)
    assert not outcome.failures
    assert outcome.runs(task).members[0].method == task.method


def test_a_run_of_a_class_that_was_never_registered_can_be_read_where_it_was_made(logged, tmp_path):
    @hyperparameters
    @dataclass(frozen=True)
    class Local(dr3.DQN):
        name: ClassVar[str] = "local"

    runs = dr3.train(logged, Local(hidden=(4,), batch_size=8), steps=2, out=tmp_path / "run", progress=False)
    assert type(runs.members[0].method) is Local
    assert np.isfinite(runs.metrics["losses/total"]).all()
