from __future__ import annotations

import json
import shutil

import jax
import numpy as np
import pytest

from dr3.cli import invoke
from dr3.data import load
from dr3.data.npz import write_npz
from dr3.methods import DQN
from dr3.runs import Runs
from dr3.training import train


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "run"
    method = DQN(hidden=(4,), batch_size=8, discount=0.9)
    train(load("grid16smoothobs:size=32", discount=0.9), method, steps=4, out=out, evaluate_every=2, progress=False)
    return out


@pytest.fixture
def own(folder, tmp_path):
    """A copy of the run that a test may change."""
    return shutil.copytree(folder, tmp_path / "run")


def set_returns(folder, returns):
    """Let the only member have had these returns: {step: return}. Its state, which would notice, goes."""
    shutil.rmtree(folder / "state")
    file = folder / "evaluations.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    changed = [{**row, "evaluation/return": returns.get(row["step"], 0.0)} for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in changed))


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


def test_a_run_without_checkpoints_is_a_mistake_and_not_healthy(own, capsys):
    shutil.rmtree(own / "checkpoints")
    assert invoke(["diagnose", str(own)]) == 2
    said = capsys.readouterr()
    assert "has no complete checkpoint yet" in said.err
    assert said.out == ""


def test_a_place_where_no_picture_can_be_is_refused_before_any_policy_is_tried(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("dr3.diagnostics.reinitialisation.reinitialise", lambda *_, **__: pytest.fail("tried"))
    (tmp_path / "file").touch()
    assert invoke(["diagnose", str(folder), "--layers", "--out", str(tmp_path / "file" / "layers.png")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_layers_make_a_picture(folder, tmp_path, capsys):
    assert invoke(["diagnose", str(folder), "--layers", "--out", str(tmp_path / "layers.png")]) == 0
    assert (tmp_path / "layers.png").read_bytes().startswith(b"\x89PNG")
    assert invoke(["diagnose", str(folder), "--layers", "--replace", "fresh", "--json"]) == 0
    record = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
    assert record["test"] == "re-randomisation"
    assert record["layers"] == ["dense1", "head"]


def test_select_prints_its_protocol(folder, capsys):
    assert invoke(["select", str(folder), "--rule", "last"]) == 0
    assert "Rule last: the last checkpoint. No simulator was used." in " ".join(capsys.readouterr().out.split())
    assert invoke(["select", str(folder), "--rule", "last", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)[0]
    assert (record["member"], record["step"], record["members"][0]["step"]) == (0, 4, 4)


def test_select_ranks_everything_together_and_says_what_cannot_be_told(own, capsys):
    code = invoke(["select", str(own)])
    said = " ".join(capsys.readouterr().out.split())
    assert "Rule fqe" in said
    assert "The policy that logged is worth" in said
    assert "cannot be told" in said
    record = json.loads((own / "selection.json").read_text())
    assert code == (1 if record["member"] is None else 0)
    assert len(record["ranking"]) == 2


def test_a_member_whose_critics_are_all_broken_has_no_checkpoint_and_the_exit_code_is_1(own, capsys):
    runs = Runs(own)
    for step in (2, 4):
        critics = jax.tree.map(lambda leaf: leaf * np.nan, runs.critics(step))
        runs.folder.checkpoints.save(step, critics)
    assert invoke(["select", str(own), "--rule", "healthy"]) == 1
    assert "dqn: no checkpoint has a critic that is finite." in capsys.readouterr().out
    assert invoke(["select", str(own), "--rule", "healthy", "--json"]) == 1
    members = json.loads(capsys.readouterr().out)[0]["members"]
    assert members == [{"member": "dqn", "step": None, "scores": [None, None]}]


def test_a_better_rule_has_less_regret_where_returns_are_negative(own, capsys):
    set_returns(own, {2: -10.0, 4: -2.0})
    capsys.readouterr()
    assert invoke(["select", "--measure", str(own), "--rules", "last", "step:2", "--json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    # All that can be lost is 8. A single run has no interval.
    assert rules["last"]["regret"] == [0, None, None]
    assert rules["step:2"]["regret"] == [1, None, None]
    assert rules["any checkpoint"]["regret"] == [0.5, None, None]
    assert rules["last"]["gain"] == [0.5, None, None]


def test_what_was_kept_and_who_fell_are_counted(own, capsys):
    set_returns(own, {2: 1.0, 4: 2.0})
    assert invoke(["select", "--measure", str(own), "--rules", "td-error", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [kept["way"] for kept in record["kept"]] == ["surest", "one-error", "earliest", "largest"]
    for kept in record["kept"]:
        assert (kept["rule"], kept["run"], kept["logged"], kept["rightly"]) == ("td-error", str(own), None, None)
        assert kept["best"] >= kept["kept"] >= kept["worst"]
    assert record["recall"]["any sign"] == {"shown": 0, "fell": 0}  # two checkpoints are too few to have fallen


def test_a_world_where_every_return_is_0_is_named_and_left_out(own, capsys):
    set_returns(own, {2: 0.0, 4: 0.0})
    assert invoke(["select", "--measure", str(own), "--rules", "last"]) == 2
    said = capsys.readouterr()
    assert "grid16smoothobs: left out; every checkpoint earned 0 there." in said.out
    assert "No rule can be measured" in said.err


def test_rules_are_measured_on_data_that_moved(own, tmp_path, capsys):
    set_returns(own, {2: 1.0, 4: 3.0})
    moved = tmp_path / "moved.npz"
    write_npz(moved, load("grid16smoothobs:size=32", discount=0.9))
    config = json.loads((own / "config.json").read_text())
    config["data"] |= dict.fromkeys(("source", "found_at"), str(tmp_path / "away.npz"))
    (own / "config.json").write_text(json.dumps(config))
    arguments = ["select", "--measure", str(own), "--rules", "q"]
    assert invoke(arguments) == 2
    assert "away.npz" in capsys.readouterr().err
    assert invoke([*arguments, "--data", str(moved)]) == 0


def test_what_was_measured_of_rules_once_is_not_measured_again(own, monkeypatch):
    set_returns(own, {2: 1.0, 4: 3.0})
    arguments = ["select", "--measure", str(own), "--rules", "q"]
    assert invoke(arguments) == 0
    assert sorted(file.stem for file in (own / "measurements").glob("*.npz")) == ["000000002", "000000004"]
    monkeypatch.setattr("dr3.reports.checkup.measure", lambda *_, **__: pytest.fail("measured again"))
    assert invoke(arguments) == 0


def test_a_world_that_a_run_does_not_name_is_not_looked_up(own, capsys):
    config = json.loads((own / "config.json").read_text())
    config["data"]["world"] = None
    (own / "config.json").write_text(json.dumps(config))
    assert invoke(["select", str(own), "--rule", "td-error", "--held-out", "{world}:seed=5"]) == 2
    assert "does not say which world" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["select", "--rule", "q", "--rules", "q"], "--rules says what --measure compares"),
        (["select", "--rule", "q", "--no-gradients"], "--no-gradients is for --measure"),
        (["select", "--measure", "--rule", "q"], "--rule chooses by one rule"),
        (["select", "--rule", "q", "--held-out", "x.npz"], "--held-out is for the rules fqe, healthy, td-error"),
        (["diagnose", "--layers", "--data", "x.npz"], "--layers evaluates policies in a world and reads no data"),
        (["diagnose", "--layers", "--held-out", "x.npz"], "--layers evaluates policies in a world and reads no data"),
        (["diagnose", "--replace", "fresh"], "are for --layers"),
        (["diagnose", "--out", "x.png"], "are for --layers"),
    ],
)
def test_flags_that_would_be_ignored_are_refused(folder, arguments, sentence, capsys):
    command, *flags = arguments
    assert invoke([command, str(folder), *flags]) == 2
    assert sentence in capsys.readouterr().err


def test_select_measures_rules_where_returns_are_known(own, capsys):
    set_returns(own, {2: 1.0, 4: 3.0})
    command = ["select", "--measure", str(own), "--held-out", "{world}:seed=5:size=16"]
    assert invoke(command) == 0
    assert "rank correlation" in capsys.readouterr().out
    assert invoke([*command, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert set(record["rules"]) >= {"last", "fqe", "td-error", "coadaptation", "any checkpoint"}
    assert record["trials"][0]["task"] == "grid16smoothobs"


def test_mistakes_are_exit_code_2(folder, tmp_path, capsys):
    assert invoke(["select", str(folder), "--rule", "best"]) == 2
    assert "There is no rule 'best'; there are" in capsys.readouterr().err
    assert invoke(["diagnose", str(tmp_path)]) == 2
    assert "is not a run" in capsys.readouterr().err
