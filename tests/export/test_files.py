"""What lies beside an exported policy, what is refused, and the replay that needs no JAX."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from dr3.cli import invoke
from dr3.errors import UserError
from dr3.export import export_policy, verify
from dr3.export.graph import Constant, Graph, Value
from dr3.export.judgement import estimates_of
from dr3.export.replay import read_contract
from dr3.files import sha256_of, write_json
from dr3.runs import Runs

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

DATA = "grid16smoothobs:size=64"


@pytest.fixture(scope="module")
def policy(small_run, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "policy.onnx"
    export_policy(Runs(small_run), path)
    return path


def sign(policy: Path) -> None:
    """Have the contract speak of the rows that are there now."""
    contract = policy.with_suffix(".json")
    record = json.loads(contract.read_text())
    record["probe"]["sha256"] = sha256_of(policy.with_suffix(".probe.npz"))
    write_json(contract, record)


@pytest.fixture
def copied(policy, tmp_path) -> Path:
    return Path(shutil.copytree(policy.parent, tmp_path / "copy")) / policy.name


def test_the_contract_says_where_it_came_from(policy, small_run):
    record = json.loads(policy.with_suffix(".json").read_text())
    assert (record["member"], record["step"], record["algorithm"]) == (0, 40, "dqn")
    assert record["sha256"] == sha256_of(policy)
    assert record["probe"]["sha256"] == sha256_of(policy.with_suffix(".probe.npz"))
    assert record["data"]["rows"] == 64
    assert record["rewards"] == {"scale": 1.0, "shift": 0.0}
    assert (record["selection"], record["estimates"]) == (None, None)
    member = Runs(small_run).health().members[0]  # of all parameters, too: that is a note
    assert record["doctor"]["verdicts"] == [str(verdict) for verdict in member.verdicts]
    assert record["doctor"]["rows"] == 64
    assert "the spectrum over all parameters" in record["doctor"]["not_looked_at"]
    stored = onnx.load(policy)
    assert {one.key: one.value for one in stored.metadata_props}["dr3.step"] == "40"
    assert [one.name for one in stored.graph.initializer if "." in one.name] == [
        "trunk.stack.0.weight",
        "trunk.stack.0.bias",
        "trunk.stack.1.weight",
        "trunk.stack.1.bias",
        "head.weight",
        "head.bias",
    ]


def test_what_was_selected_is_exported_and_its_estimate_is_in_the_contract(copied_run, tmp_path):
    write_json(copied_run / "selection.json", {"run": "run", "member": 2, "step": 20, "estimate": [1.0, 2.0]})
    record = export_policy(Runs(copied_run), tmp_path / "policy.onnx").record
    assert (record["member"], record["step"], record["algorithm"]) == (2, 20, "dqn+dr3:0.1")
    assert record["selection"]["estimate"] == [1.0, 2.0]
    assert export_policy(Runs(copied_run), tmp_path / "other.onnx", member=1).record["selection"] is None


def test_an_estimate_with_its_interval_is_in_the_contract(copied_run):
    one = {"policy": "elsewhere/run@20:2", "member": 2, "step": 20, "score": [1.0, 0.5, 1.5], "why": None}
    other = {"policy": f"{copied_run}@40:1", "member": 1, "step": 40, "score": None, "why": "it has not converged"}
    record = {"run": "elsewhere/run", "member": 2, "step": 20, "rule": "fqe", "logged": [0.7, 0.6, 0.8]}
    write_json(copied_run / "selection.json", {**record, "ranking": [one, other]})
    chosen = estimates_of(Runs(copied_run), 2, 20)
    assert chosen is not None
    assert (chosen["rule"], chosen["score"], chosen["logged"]) == ("fqe", [1.0, 0.5, 1.5], [0.7, 0.6, 0.8])
    assert (estimates_of(Runs(copied_run), 1, 40) or {})["why"] == "it has not converged"
    assert estimates_of(Runs(copied_run), 0, 40) is None


def test_the_replay_loads_no_jax(policy):
    script = (
        "import sys; from dr3.cli import invoke; "
        f"code = invoke(['verify', {str(policy)!r}, '--data', {DATA!r}]); print(code, 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "the same actions" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 False"


def test_beside_the_run_all_rows_are_replayed(policy, small_run):
    found = verify(policy, data="grid16smoothobs:size=80:seed=3", run=small_run)
    assert found.same
    assert found.rows == 80


def test_another_policy_is_noticed(copied, small_run):
    other = copied.with_name("other.onnx")
    export_policy(Runs(small_run), other, member=1)
    shutil.copy(other.with_suffix(".probe.npz"), copied.with_suffix(".probe.npz"))
    assert "probe.npz is not the file" in str(verify(copied).why)
    sign(copied)
    found = verify(copied)
    assert not found.same
    assert "differs from what the run's own policy had said: " in str(found.why)
    assert "values of" in str(found.why)


def test_a_changed_file_is_noticed(copied, capsys):
    copied.write_bytes(copied.read_bytes() + b"\0")
    assert invoke(["verify", str(copied)]) == 1
    assert "is not the file that its contract was written with" in capsys.readouterr().err
    assert invoke(["verify", str(copied), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["same"] is False


def test_other_data_are_no_mistake_of_the_policy(policy):
    with pytest.raises(UserError, match="are not the data of the contract"):
        verify(policy, data="grid16smoothobs:size=64:seed=1")
    with pytest.raises(UserError, match="32 rows are fewer"):
        verify(policy, data="grid16smoothobs:size=32")


def test_ties_within_rounding_are_no_difference(copied):
    """Another action of the same value is counted; one of another value is a difference."""
    probe = copied.with_suffix(".probe.npz")
    with np.load(probe) as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays["expected.action"] = arrays["expected.action"].copy()
    row, best = 3, arrays["expected.action"][3]
    arrays["expected.action"][row] = (best + 1) % 5
    np.savez(probe, **arrays)
    sign(copied)
    assert not verify(copied).same
    arrays["expected.values"][row, (best + 1) % 5] = arrays["expected.values"][row, best]
    np.savez(probe, **arrays)
    sign(copied)
    assert verify(copied).tied == 1


def test_a_contract_is_not_overwritten_by_that_of_another_file(copied, small_run):
    with pytest.raises(UserError, match=r"is the contract of policy\.onnx, and would be overwritten; give"):
        export_policy(Runs(small_run), copied.with_suffix(".stablehlo"), to="stablehlo")
    export_policy(Runs(small_run), copied, step=20)  # the same file, anew
    assert verify(copied).same


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda runs, out: export_policy(runs, out, member=4), "has 4 members, numbered from 0; there is no member 4"),
        (lambda runs, out: export_policy(runs, out, step=30), r"no checkpoint of step 30; it has \[0, 20, 40\]"),
        (lambda runs, out: export_policy(runs, out, sample=True), "dqn draws nothing: it takes its best action"),
        (
            lambda runs, out: export_policy(runs, out, to="torch"),  # ty: ignore[invalid-argument-type]
            "exported to onnx, stablehlo, npz, not to 'torch'",
        ),
        (lambda runs, out: export_policy(runs, out.with_suffix(".json")), "overwritten by what lies beside a policy"),
        (lambda runs, out: verify(out), "There is no file"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(small_run, tmp_path, call, says):
    with pytest.raises(UserError, match=says):
        call(Runs(small_run), tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())


def test_a_contract_that_somebody_has_changed_is_refused(small_run, tmp_path):
    """It is read before the policy that it is beside."""
    out = tmp_path / "policy.onnx"
    out.write_bytes(b"")
    export_policy(Runs(small_run), tmp_path / "npz" / "policy.npz", to="npz")
    whole = json.loads((tmp_path / "npz" / "policy.json").read_text())
    assert read_contract(tmp_path / "npz" / "policy.npz") == whole
    probe = whole["probe"]
    for change in (
        {"inputs": [3]},
        {"inputs": []},
        {"inputs": [{"name": "observation"}]},
        {"outputs": [{"name": "action", "dtype": "object", "shape": ["n"]}]},
        {"outputs": [{"name": "action", "dtype": "int32", "shape": ["n", -1]}]},
        {"probe": {}},
        {"probe": probe | {"file": "../policy.probe.npz"}},
        {"probe": probe | {"file": str(tmp_path / "policy.probe.npz")}},
        {"actions": {}},
        {"data": {}},
        {"acts": 3},
    ):
        write_json(tmp_path / "policy.json", whole | change)
        with pytest.raises(UserError, match="damaged"):
            verify(out)
        assert invoke(["evaluate", str(out), "--data", "grid16smoothobs"]) == 2


def test_a_diverged_member_has_no_policy(copied_run, tmp_path):
    runs = Runs(copied_run)
    critics = runs.critics(40)
    broken = [critics[0], *critics[1:]]
    broken[0] = type(critics[0])(
        critics[0].trunk, type(critics[0].head)(critics[0].head.weight * np.nan, critics[0].head.bias)
    )
    runs.folder.checkpoints.save(40, broken)
    with pytest.raises(UserError, match=r"Member 0 .* had diverged at step 40: its head.weight is not finite"):
        export_policy(runs, tmp_path / "policy.onnx")


def test_the_command_prints_inputs_and_outputs(small_run, tmp_path, capsys):
    out = tmp_path / "policy.onnx"
    assert invoke(["export", str(small_run), "--out", str(out), "--step", "20"]) == 0
    printed = capsys.readouterr().out
    assert "dqn, member 0, step 20" in printed
    assert "input   observation    float32  (n, 16)" in printed
    assert "output  action         int32    (n,)" in printed
    assert invoke(["export", str(small_run), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == "policy.onnx"


def test_a_graph_has_each_node_once_and_none_that_nobody_needs():
    x = Value("x", ("n", 2), np.dtype(np.float32))
    graph = Graph([x])
    one = Constant(np.ones(2, np.float32), "one")
    (first,), (again,) = graph.node("Add", x, one), graph.node("Add", x, one)
    assert first == again
    graph.node("Sub", x, Constant(np.zeros(2, np.float32), "unused"))
    stored = graph.model([graph.output(Value(first, x.shape, x.dtype), "y")]).graph
    assert [node.op_type for node in stored.node] == ["Add", "Identity"]
    assert [constant.name for constant in stored.initializer] == ["one"]
