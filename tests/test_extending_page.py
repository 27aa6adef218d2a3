"""What docs/extending.md shows is a plugin that works: its blocks make one module, and its commands run."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import dr3
from dr3 import plugins, registry
from dr3.cli import invoke

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = [dedent(block) for block in re.findall(r"(?:(?:    .*)?\n)+", PAGE) if "@dr3.register" in block]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The page's module, the data that its commands name, and nothing registered before."""
    monkeypatch.chdir(tmp_path)
    for module, name, value in (
        (registry, "_added", {kind: {} for kind in registry._added}),
        (plugins, "_remembered", {}),
        (plugins, "_loaded", {}),
    ):
        monkeypatch.setattr(module, name, value)
    code = "\n".join(line for block in BLOCKS for line in block.splitlines() if not line.startswith("$ "))
    (tmp_path / "my_methods.py").write_text(code, encoding="utf-8")
    (tmp_path / "log.rows").write_text("x,y,action,reward,done\n" + "0.5,1,0,0,0\n1,0.25,1,1,1\n" * 8)
    moves = _pole() | {"actions": np.random.default_rng(1).uniform(-1, 1, (32, 2)).astype(np.float32)}
    for name, columns in (("log", _pole()), ("moves", moves)):
        dr3.data.write_npz(tmp_path / f"{name}.npz", dr3.data.assemble(columns, source=name, name=name))
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("my_methods", None)


def _pole():
    random = np.random.default_rng(0)
    return {
        "observations": random.normal(size=(32, 4)).astype(np.float32),
        "actions": random.integers(2, size=32),
        "rewards": np.ones(32, np.float32),
        "terminals": np.arange(32) % 8 == 7,
    }


def test_it_shows_one_of_each_kind():
    shown = "".join(BLOCKS)
    assert len(BLOCKS) == 5
    assert shown.count("$ dr3") == 5
    assert shown.count("@dr3.register\n") == 3  # methods for discrete and for continuous actions, a regularizer


@pytest.mark.slow
def test_its_commands_run(folder, capsys):
    for command in re.findall(r"^\$ dr3 (.*)$", "\n".join(BLOCKS), re.MULTILINE):
        words = shlex.split(command)
        if words[0] == "train":
            if "--steps" in words:
                del words[(place := words.index("--steps")) : place + 2]
            words += ["--steps", "4", "--hidden", "8", "--batch-size", "8"]
            words += ["--policy-hidden", "8"] if "near" in words else ["--episodes", "1"]
        assert invoke(words) == 0, capsys.readouterr().err
