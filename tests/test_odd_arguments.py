"""Odd names and numbers, in a shell and in Python: one sentence each."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dr3
from dr3 import ope
from dr3.cli import invoke
from dr3.data import assemble, monte_carlo_returns, write
from dr3.diagnostics import rank, select
from dr3.errors import UserError
from dr3.export import export_policy
from dr3.notation import count
from dr3.runs import Runs
from dr3.sweeps import Local, OnRay

VALUES = (-200, 0, math.nan, 1e300, 10**30, "x", "²", None, [], {}, True, 2.5)


def leaves(value, path=()):
    """Every place in a configuration."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from leaves(item, (*path, key))


def test_no_edit_of_a_stored_configuration_ends_badly(copied_run):
    """Each place in turn holds each odd value, or nothing, or something more: the run opens, or it says why not."""
    file = copied_run / "config.json"
    good = json.loads(file.read_text())
    good["members"] = good["members"][:1]
    refused = opened = 0
    for path in [place for place in leaves(good) if place]:
        for edit in (*VALUES, "remove", "add"):
            config = json.loads(json.dumps(good))
            holder = config
            for key in path[:-1]:
                holder = holder[key]
            if edit == "remove":
                del holder[path[-1]]
            elif edit == "add" and isinstance(holder, dict):
                holder[f"{path[-1]}²"] = 1
            else:
                holder[path[-1]] = edit
            file.write_text(json.dumps(config))
            try:
                runs = Runs(copied_run)
            except UserError:
                refused += 1
                continue
            opened += 1
            assert min(runs.config.steps, runs.config.metrics_every, runs.config.evaluate_every) >= 1
            assert "dqn" in repr(runs)
    assert refused > opened > 0


def test_no_line_that_is_none_of_the_run_ends_badly(copied_run):
    """Of a run without states, as older versions left them: no checksum tells."""
    shutil.rmtree(copied_run / "state")
    good = {"step": 10, "member": 0, "td/error": 1.0, "returns": [1.0, None]}
    steps, numbers = (-5, 2**40, 10**400, True, 1.0, None), (10**400, "x", [1], {})
    odd: list[dict[str, Any]] = [{"step": step} for step in steps] + [
        {"member": member} for member in (-1, 4, True, "0")
    ]
    odd += [{"td/error": number} for number in numbers] + [{"returns": ["x"]}, {"returns": [[1]]}, {"returns": 3}]
    lines = [json.dumps(good | change) for change in odd]
    for line in (*lines, '"a"', "3", "[1]", "null", "[" * 10_000, "9" * 5000):
        for name in ("metrics.jsonl", "evaluations.jsonl"):
            (copied_run / name).write_text(json.dumps(good) + "\n" + line + "\n")
        for read in ("metrics", "evaluations"):
            with pytest.raises(UserError, match="is damaged"):
                getattr(Runs(copied_run), read)
    (copied_run / "evaluations.jsonl").write_text(json.dumps(good) + "\n")
    assert Runs(copied_run).returns[0] == [[1.0, None]]


@pytest.mark.parametrize("text", ["²", "9" * 5000, "1e300", "nan", "inf", "", "1.5", "-1e400", "٣.٥"])
def test_no_odd_number_is_a_count(text):
    with pytest.raises(ValueError, match=r"."):
        count(text)


@pytest.mark.parametrize(
    "words",
    [
        ["data", "describe", "grid16smoothobs:size=1e300"],
        ["data", "describe", "grid16smoothobs:size=1e12"],
        ["data", "describe", "grid16smoothobs:dim_obs=1e12"],
        ["data", "describe", "grid16smoothobs:size=²"],
        ["data", "describe", "a" * 5000],
        ["data", "describe", "a\0b.npz"],
        ["train", "dqn", "--data", "grid16smoothobs", "--init-from", "run@²"],
        ["train", "dqn", "--data", "grid16smoothobs", "--init-from", f"run@{'9' * 5000}"],
        ["train", "dqn", "--data", "grid16smoothobs", "--steps", "9" * 5000],
        ["train", "dqn", "--data", "grid16smoothobs", "--hidden", "2000000000", "2000000000"],
        ["train", "dqn", "--data", "grid16smoothobs", "--hidden", "2147483647"],
        ["sweep", "grid.toml", "--save-every", "nan"],
    ],
)
def test_the_command_says_it_in_one_sentence(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text('steps = 2\ndata = "grid16smoothobs"\n[methods.dqn]\n')
    try:
        code = invoke(words)
    except SystemExit as left:  # tyro's own way to refuse a flag
        code = left.code
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err
    assert not list(tmp_path.glob("runs/*/config.json"))


@pytest.mark.parametrize(
    "settings",
    [
        {"save_every": math.nan},
        {"save_every": "often"},
        {"save_every": -1},
        {"steps": "many"},
        {"steps": math.nan},
        {"seeds": 0.5},
        {"seeds": "ab"},
        {"out": 3},
        {"init_from": 3},
        {"episodes": None},
        {"metrics_every": math.inf},
        {"env": 3},
    ],
)
def test_arguments_of_another_type_are_refused(logged, settings, tmp_path):
    given: dict[str, Any] = {"steps": 1, "env": None, "out": tmp_path / "run", "progress": False} | settings
    if "episodes" in settings:
        given["env"] = "grid16smoothobs"
    with pytest.raises(UserError):
        dr3.train(logged, dr3.DQN(hidden=(4,)), **given)


def test_engines_refuse_them_too():
    for engine in (Local, OnRay):
        cases: list[Any] = [{"save_every": math.nan}, {"retries": "x"}, {"retries": -1}]
        for settings in cases:
            with pytest.raises(UserError):
                engine(**settings)
    cases = [{"cpus": "x"}, {"cpus": 1.5}, {"gpus": "x"}, {"gpus": math.nan}, {"cpus": None}, {"address": 3}]
    for settings in cases:
        with pytest.raises(UserError):
            OnRay(**settings)
    with pytest.raises(UserError):
        Local(workers="x")  # ty: ignore


def test_brackets_in_a_name_are_shown_and_are_no_markup(tmp_path, capsys):
    file = tmp_path / "results.jsonl"
    rows = [{"algorithm": "[/a]", "task": "[red]:t:", "seed": n, "step": 1, "returns": [n]} for n in range(2)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert invoke(["stats", str(file)]) == 0
    said = capsys.readouterr().out
    assert "[/a]" in said
    assert "[red]:t:" in said


# No type checker could say that these are called wrongly.
evaluate: Any = ope.evaluate
fqe: Any = ope.FQE
choose: Any = select
export: Any = export_policy
load: Any = dr3.load


def stays(seen):
    return np.zeros(len(seen), np.int32)


@pytest.mark.parametrize(
    "call",
    [
        lambda data, runs: evaluate({"a": stays}, data, discount=math.nan),
        lambda data, runs: evaluate({"a": stays}, data, discount="x"),
        lambda data, runs: evaluate({"a": stays}, data, discount=2),
        lambda data, runs: evaluate({"a": stays}, data, discount=0.9, fqe=3),
        lambda data, runs: evaluate({"a": 3}, data, discount=0.9),
        lambda data, runs: evaluate({"a": lambda seen: "x"}, data, discount=0.9),
        lambda data, runs: evaluate({"a": lambda seen: None}, data, discount=0.9),
        lambda data, runs: evaluate({"a": lambda seen: np.zeros(3, np.int32)}, data, discount=0.9),
        lambda data, runs: fqe(hidden=(0,)),
        lambda data, runs: fqe(hidden=(2**31 - 1,)),
        lambda data, runs: fqe(learning_rate=math.nan),
        lambda data, runs: fqe(seed=-1),
        lambda data, runs: choose(runs, 3),
        lambda data, runs: rank([], "fqe"),
        lambda data, runs: runs.health(3),
        lambda data, runs: export(runs, 3, to="npz"),
        lambda data, runs: export("run", "a.npz", to="npz"),
        lambda data, runs: load("grid16smoothobs", discount="x"),
        lambda data, runs: dr3.train(data, dr3.DQN(hidden=(4,)), steps=1, env=None, out="a\0b", progress=False),
        lambda data, runs: write(Path("a\0b.npz"), data),
    ],
)
def test_other_rooms_refuse_them(logged, small_run, call):
    with pytest.raises(UserError):
        call(logged, Runs(small_run))


@pytest.mark.parametrize("source", [3, None, b"a.npz", ["a.npz"]])
def test_what_is_no_source_is_refused(source):
    with pytest.raises(UserError):
        dr3.load(source)


def test_returns_that_overflow_are_refused(logged):
    with pytest.raises(UserError, match="row 0 on is beyond a float32"):
        monte_carlo_returns(np.full(4, 3e38, np.float32), np.zeros(4, np.int32), 0.99)
    columns = {"observations": np.ones((4, 2)), "actions": np.zeros(4, np.int32), "rewards": np.full(4, 3e38)}
    with pytest.raises(UserError, match="scale the rewards"):
        assemble(columns | {"terminals": np.zeros(4)}, source="a", name="a")
    with pytest.raises(UserError, match="discount"):
        assemble(columns | {"terminals": np.zeros(4)}, source="a", name="a", discount="x")  # ty: ignore


def test_a_path_that_is_not_utf8_is_a_path(logged, tmp_path, capsys):
    try:
        folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
        folder.mkdir()
    except OSError:
        pytest.skip("this system has no such names")
    write(folder / "a.npz", logged)
    assert invoke(["data", "describe", str(folder / "a.npz"), "--json"]) == 0
    capsys.readouterr()
    method = dr3.DQN(hidden=(4,), batch_size=4)
    runs = dr3.train(dr3.load(folder / "a.npz"), method, steps=2, env=None, out=folder / "run", progress=False)
    assert Runs(runs.path).config.data.source == str(folder / "a.npz")
    assert dr3.train(dr3.load(folder / "a.npz"), method, steps=4, env=None, out=folder / "run", progress=False)
