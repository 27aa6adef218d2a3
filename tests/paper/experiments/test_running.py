from __future__ import annotations

import json

import numpy as np
import pytest

from dr3.diagnostics.reinitialisation import LayerTest
from dr3.errors import UserError
from dr3.paper.experiments import EXPERIMENTS, Design, Experiment, Plan, Result, reproduce, write_record
from dr3.paper.experiments.pictures import Layers
from dr3.sweeps import InProcess, Preparation


def test_a_run_that_failed_is_named_with_its_log(tmp_path):
    failing = Preparation(str(tmp_path / "never.npz"), "builtins:len", {})
    experiment = Experiment(
        id="figure-0",
        label="fig:none",
        title="None",
        claim="None.",
        printed="Nothing.",
        checks=(),
        design=lambda scale, folders: Design(preparations=(failing,)),
    )
    plan = Plan((experiment,), "smoke", tmp_path / "data", tmp_path / "out")
    (result,) = reproduce(plan, engine=InProcess(), show=False)
    assert result.verdict == "cannot be compared"
    assert result.failed
    assert f"{failing.name}: TypeError" in result.why
    assert f"Its log: {plan.folders.runs / failing.name / 'log.txt'}" in result.why


@pytest.fixture
def kept(tmp_path):
    """A folder with the result of table-E.1 at smoke scale, and that of another experiment."""
    result = Result("table-E.1", "smoke", "shows", "")
    for id in ("table-E.1", "table-1"):
        result.write(tmp_path / "smoke" / id, EXPERIMENTS["table-E.1"])
    return tmp_path, result


def test_a_result_from_before_failures_were_noted_is_read(kept):
    out, result = kept
    file = out / "smoke" / "table-E.1" / "result.json"
    record = json.loads(file.read_text())
    del record["failed"]
    file.write_text(json.dumps(record))
    assert Result.read(file.parent) == result


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"id": "table', '{"id": "table-1", "verdict": "shows", "why": "", "answers": [3]}']
)
def test_a_damaged_result_is_said_with_its_file_and_not_left_out_of_the_record(kept, content):
    out, _ = kept
    (out / "smoke" / "table-1" / "result.json").write_text(content)
    (out / "page.md").write_text("as it was")
    with pytest.raises(UserError, match=r"table-1/result\.json is damaged"):
        write_record(out / "page.md", out, "smoke")
    assert (out / "page.md").read_text() == "as it was"


@pytest.mark.parametrize("change", [{"answers": [{"rule": "r"}]}, {"answers": [3]}, {"rows": [{"other": 1}]}])
def test_a_result_of_something_else_is_said_with_its_file(kept, change):
    out, _ = kept
    file = out / "smoke" / "table-1" / "result.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(UserError, match=r"result\.json is not of an experiment that this dr3 can read"):
        Result.read(file.parent)


def test_a_result_that_cannot_be_written_leaves_the_old_one(kept, monkeypatch):
    out, result = kept
    folder = out / "smoke" / "table-E.1"

    def half(self, text, **_):
        self.write_bytes(text.encode()[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", half)
    with pytest.raises(OSError, match="No space left"):
        result.write(folder, EXPERIMENTS["table-E.1"])
    assert Result.read(folder) == result
    assert [file.name for file in folder.iterdir()] == ["result.json"]


def test_maps_of_layers_say_their_scale_and_seeds(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    told = []
    monkeypatch.setattr(Figure, "supxlabel", lambda self, words, **_: told.append(words))

    class Measured:
        labels = ("DQN",)

        def places(self):
            return ["here"]

        def layers(self, label, place):
            steps, shares = np.array([10, 20]), np.ones((1, 2, 2))
            return LayerTest("re-initialisation", ("first", "last"), steps, shares, np.ones((1, 2)))

    Layers()(Measured(), tmp_path / "figure.png", "smoke scale, 2 seeds")  # ty: ignore[invalid-argument-type]
    assert told == ["smoke scale, 2 seeds"]
    assert (tmp_path / "figure.png").exists()
