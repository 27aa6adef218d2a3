from __future__ import annotations

import json

import pytest

from dr3.cli import invoke
from dr3.collect import load
from dr3.methods import DQN
from dr3.training import train


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "run"
    method = DQN(hidden=(4,), batch_size=8, discount=0.9)
    train(load("grid16smoothobs:size=32", discount=0.9), method, steps=4, out=out, evaluate_every=2, progress=False)
    return out


def test_the_exit_code_is_the_health(folder, capsys):
    code = invoke(["diagnose", str(folder), "--json"])
    record = json.loads(capsys.readouterr().out)
    assert code == (0 if record["healthy"] else 1)
    assert record["members"][0]["member"] == "dqn"
    assert invoke(["diagnose", str(folder), "--held-out", "grid16smoothobs:size=16:seed=2"]) == code
    assert "32 rows, checkpoints 0 to 4" in capsys.readouterr().out


def test_an_ill_run_is_exit_code_1(folder, tmp_path, capsys):
    method = DQN(hidden=(4,), batch_size=8, discount=0.9, learning_rate=100.0)
    data = load("grid16smoothobs:size=32", discount=0.9)
    train(data, method, steps=30, out=tmp_path / "ill", evaluate_every=10, progress=False)
    assert invoke(["diagnose", str(tmp_path / "ill")]) == 1
    assert "Try:" in capsys.readouterr().out


def test_layers_make_a_picture(folder, tmp_path, capsys):
    assert invoke(["diagnose", str(folder), "--layers", "--out", str(tmp_path / "layers.png")]) == 0
    assert (tmp_path / "layers.png").read_bytes().startswith(b"\x89PNG")
    assert invoke(["diagnose", str(folder), "--layers", "--replace", "fresh", "--json"]) == 0
    record = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
    assert record["test"] == "re-randomisation"
    assert record["layers"] == ["dense1", "head"]


def test_select_prints_its_protocol(folder, tmp_path, capsys):
    assert invoke(["select", str(folder), "--rule", "last", "--json", str(tmp_path / "chosen.json")]) == 0
    assert "Rule last: the last checkpoint. No simulator was used." in " ".join(capsys.readouterr().out.split())
    assert json.loads((tmp_path / "chosen.json").read_text())[0]["members"][0]["step"] == 4


def test_select_measures_rules_where_returns_are_known(folder, tmp_path, capsys):
    file = tmp_path / "study.json"
    assert (
        invoke(["select", "--measure", str(folder), "--held-out", "{world}:seed=5:size=16", "--json", str(file)]) == 0
    )
    record = json.loads(file.read_text())
    assert set(record["rules"]) >= {"last", "fqe", "td-error", "coadaptation", "any checkpoint"}
    assert record["trials"][0]["task"] == "grid16smoothobs"
    assert "rank correlation" in capsys.readouterr().out


def test_mistakes_are_exit_code_2(folder, tmp_path, capsys):
    assert invoke(["select", str(folder)]) == 2
    assert "--rule last, step:N" in capsys.readouterr().err
    assert invoke(["diagnose", str(tmp_path)]) == 2
    assert "is not a run" in capsys.readouterr().err
