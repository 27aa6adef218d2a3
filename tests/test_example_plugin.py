"""The plugin in `examples/`, installed as a user would, has everything that dr3's own methods and regularizers have."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dr3
from dr3 import plugins, registry
from dr3.cli import invoke

PLUGIN = Path(__file__).parents[1] / "examples" / "plugin"
SMALL = "--hidden 8 6 --batch-size 16 --metrics-every 10 --evaluate-every 20"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    pytest.importorskip("setuptools", minversion="70.1", reason="older ones cannot build a wheel on their own")
    folder = tmp_path_factory.mktemp("installed")
    sources = shutil.copytree(PLUGIN, tmp_path_factory.mktemp("sources") / "plugin")  # building leaves files there
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", folder, sources], check=True)
    return folder


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def run(installed, patch, tmp_path_factory) -> Path:
    """`dr3 train uniform`, in two goes."""
    folder = tmp_path_factory.mktemp("runs")
    patch.chdir(folder)
    patch.syspath_prepend(str(installed))
    patch.setenv("PYTHONPATH", os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]))
    importlib.invalidate_caches()
    train = f"train uniform --data grid16smoothobs:size=64 --uniform 0.5 --regularizer none gap:0.1:scale=2 {SMALL}"
    assert invoke([*train.split(), "--steps", "20", "--out", "run"]) == 0
    assert invoke([*train.split(), "--steps", "40", "--out", "run"]) == 0
    return folder / "run"


@pytest.fixture
def forgotten(run, monkeypatch):
    """As a process that has not imported the plugin, and cannot find its entry points."""
    monkeypatch.setattr(registry, "_added", {kind: {} for kind in registry._added})
    monkeypatch.setattr(plugins, "_remembered", {})
    monkeypatch.delitem(sys.modules, "dr3_example_plugin")
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: [])


def test_it_is_listed_with_its_flags(run, capsys):
    assert invoke(["train"]) == 0
    listed = capsys.readouterr().out
    assert "uniform         Evaluate a policy that is greedy" in listed
    assert "gap          How near the features" in listed
    with pytest.raises(SystemExit) as left:
        invoke(["train", "uniform", "--help"])
    assert left.value.code == 0
    assert "--uniform FLOAT" in capsys.readouterr().out


def test_the_run_says_where_its_classes_live_and_is_read_again(run):
    config = json.loads((run / "config.json").read_text())
    method, regularizer = config["members"][1]["method"], config["members"][1]["regularizer"]
    assert (method["name"], method["class"]) == ("uniform", "dr3_example_plugin:ExpectedUniform")
    assert (regularizer["name"], regularizer["class"]) == ("gap", "dr3_example_plugin:FeatureGap")
    runs = dr3.open(run)
    assert runs.status == {"step": 40, "finished": True, "diverged": {}}
    assert [member.algorithm for member in runs.members] == ["uniform", "uniform+gap:0.1:scale=2.0"]
    assert "losses/gap" in runs.metrics


def test_a_run_in_two_goes_is_the_run_in_one(run):
    stored = dr3.open(run)
    whole = dr3.train(
        dr3.load("grid16smoothobs:size=64"),
        stored.members[0].method,
        regularizer=[member.regularizer for member in stored.members],
        steps=40,
        metrics_every=10,
        evaluate_every=20,
        out=run.parent / "whole",
        progress=False,
    )
    assert dr3.digest(whole) == dr3.digest(stored)


def test_it_is_diagnosed_selected_and_reported(run, capsys):
    assert invoke(["diagnose", str(run)]) in (0, 1)
    assert "uniform" in capsys.readouterr().out
    assert invoke(["select", str(run), "--rule", "coadaptation"]) in (0, 1)
    assert invoke(["report", str(run), "--no-gradients"]) == 0
    assert "uniform" in (run / "report.html").read_text()


def test_it_is_swept_in_worker_processes(run, capfd):
    (run.parent / "grid.toml").write_text(
        'data = "grid16smoothobs:size=64"\nsteps = 20\nregularizers = ["gap"]\n'
        "[methods.uniform]\nhidden = [8, 6]\nbatch_size = 16\nuniform = [0.0, 1.0]\n"
    )
    assert invoke(["sweep", "grid.toml", "--out", "swept", "--workers", "1"]) == 0
    folders = [folder for folder in Path("swept").iterdir() if folder.name.startswith("uniform+gap")]
    methods: list[Any] = [dr3.open(folder).members[0].method for folder in folders]
    assert sorted(method.uniform for method in methods) == [0.0, 1.0]


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("command", ["report", "diagnose", "run digest"])
def test_without_the_package_there_is_one_sentence_that_names_the_module(run, command, capsys):
    assert invoke([*command.split(), str(run)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "The method 'uniform' lives in the module dr3_example_plugin" in said
    assert "--plugin dr3_example_plugin" in said
    assert "dr3_example_plugin" not in sys.modules


@pytest.mark.usefixtures("forgotten")
def test_named_by_the_user_it_is_imported(run, capsys):
    assert invoke(["run", "digest", str(run), "--plugin", "dr3_example_plugin"]) == 0
    plugins._loaded.clear()
