"""`dr3 evaluate`."""

from __future__ import annotations

import json
import shutil

import pytest

from dr3.cli import carry_out, invoke
from dr3.errors import UserError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "one"
    words = "train dqn --data grid16smoothobs:size=150 --steps 20 --evaluate-every 10 --hidden 8 --batch-size 16"
    carry_out([*words.split(), "--discount", "0.9", "--env", "none", "--out", str(out)])
    return out


def test_a_run_is_evaluated(run, capsys):
    assert invoke(["evaluate", str(run)]) == 0
    said = capsys.readouterr().out
    assert "The policy that logged is worth" in said
    assert "solved directly" in said
    assert "3 episodes were cut" in said


def test_every_checkpoint_as_json(run, capsys):
    assert invoke(["evaluate", str(run), "--every", "--json", "--data", "grid16smoothobs:size=100:seed=5"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [one["policy"].rpartition("@")[2] for one in record["policies"]] == ["10:0", "20:0"]
    assert record["rows"] == 100
    assert len(record["policies"][0]["fqe"]) == 3


def test_what_was_selected_is_evaluated_by_default(run, tmp_path, capsys):
    own = shutil.copytree(run, tmp_path / "own")
    (own / "selection.json").write_text(json.dumps({"member": 0, "step": 10}))
    assert invoke(["evaluate", str(own), "--json"]) == 0
    assert [one["policy"].rpartition("@")[2] for one in json.loads(capsys.readouterr().out)["policies"]] == ["10:0"]


def test_what_cannot_be_evaluated_is_said(run, tmp_path):
    with pytest.raises(UserError, match="no checkpoint of step 7"):
        carry_out(["evaluate", str(run), "--step", "7"])
    with pytest.raises(UserError, match="no member 3"):
        carry_out(["evaluate", str(run), "--member", "3"])
    with pytest.raises(UserError, match="neither a run folder nor a policy file"):
        carry_out(["evaluate", str(tmp_path / "policy.onnx"), "--data", "grid16smoothobs"])


def test_a_policy_file_is_worth_what_its_run_is(run, tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    file, data = tmp_path / "policy.onnx", ["--data", "grid16smoothobs:size=100:seed=5"]
    assert invoke(["export", str(run), "--out", str(file)]) == 0
    capsys.readouterr()
    values = []
    for what in (str(file), str(run)):
        assert invoke(["evaluate", what, *data, "--json"]) == 0
        values.append(json.loads(capsys.readouterr().out)["policies"][0]["fqe"])
    assert values[0] == values[1]
