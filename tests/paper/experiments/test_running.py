from __future__ import annotations

import json

import numpy as np
import pytest

from dr3.diagnostics.reinitialisation import LayerTest
from dr3.errors import UserError
from dr3.methods import DQN
from dr3.paper.experiments import (
    EXPERIMENTS,
    Answer,
    Arm,
    Design,
    Experiment,
    Plan,
    Result,
    reproduce,
    write_record,
)
from dr3.paper.experiments.declaration import Row
from dr3.paper.experiments.pictures import Layers
from dr3.paper.experiments.running import seeds_of
from dr3.paper.experiments.scoring import Percent
from dr3.sweeps import InProcess, Preparation, Task


def test_a_run_that_failed_is_named_with_its_log(tmp_path):
    failing = Preparation(str(tmp_path / "never.npz"), len, {})
    arm = Arm("DQN", "here", (Task(failing.makes, DQN(), needs=(failing.name,)),), Percent())
    experiment = Experiment(
        id="figure-0",
        label="fig:none",
        title="None",
        claim="None.",
        printed="Nothing.",
        checks=(),
        design=lambda scale, folders: Design((arm,), preparations=(failing,)),
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


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The record of three results: one with numbers, one with a reason, one that says nothing of why."""
    missed = Answer("Dots are smaller.", "does not show", "It is so on 0 of 3 worlds.", {}, "Smaller on 0 of 3 worlds.")
    held = Answer("Scores rise.", "shows", "By 3.", {})
    numbers = (
        Row("1%: CQL, final score", "1.0", "2.0"),
        Row("1%: CQL, average score", None, "3.0"),
        Row("5%: CQL, final score", "4.0", "5.0"),
        Row("5%: CQL, average score", None, "6.0"),
        Row("not run here: Pong", "dr3 paper show atari-cql-1", None),
        Row("seeds", "5", None),
    )
    results = [
        Result("figure-1", "laptop", "does not show", "", (held, missed), note="Small stands in for large."),
        Result("table-1", "laptop", "shows", "", (held,), numbers, note="Small stands in for large."),
        Result("table-A.2", "laptop", "cannot be compared", "there are no data"),
        Result("table-2", "laptop", "cannot be compared", "nothing yet", unrun=True),
    ]
    monkeypatch.setattr("dr3.paper.experiments.record.judged", lambda plan: results)
    write_record(tmp_path / "page.md", Plan(tuple(EXPERIMENTS.values()), "laptop", tmp_path, tmp_path))
    return (tmp_path / "page.md").read_text()


def test_the_record_says_in_its_overview_what_stands_against_a_claim(page):
    first = page.partition("\n## ")[0]
    assert "Of 40 figures and tables 1 show what the paper claims, 1 do not, for 0 a precondition is not met" in first
    assert "What shows: [table-1](#table-1)." in first
    assert "| does not show | Smaller on 0 of 3 worlds. |" in first
    assert "| cannot be compared | There are no data |" in first


def test_the_record_says_everything_once(page):
    assert page.count("It is so on 0 of 3 worlds.") == 1
    assert page.count("Small stands in for large.") == 1
    assert page.count("[Setting A](#setting-a)") == 2
    section = page.partition("\n## figure-1\n")[2].partition("\n## ")[0]
    assert section.index("- **does not show**: Dots") < section.index("- shows: Scores")  # what failed comes first


def test_the_record_has_a_column_for_each_measure_and_no_empty_ones(page):
    section = page.partition("\n## table-1\n")[2].partition("\n## ")[0]
    assert "|  | final score: the paper | final score: here | average score: here |" in section
    assert "| 5%: CQL | 4.0 | 5.0 | 6.0 |" in section
    assert "Not run here: Pong (`dr3 paper show atari-cql-1`)." in section
    assert "1 number of the paper alone is left out" in section


def test_a_picture_says_how_many_seeds_a_line_has():
    def arm(world, *seeds):
        return Arm("DQN", world, tuple(Task("grid16smoothobs", DQN(), seeds=(seed,)) for seed in seeds), Percent())

    assert seeds_of(Design((arm("one", 0, 1, 2),))) == "3 seeds"
    assert seeds_of(Design((arm("one", 0, 1, 2), arm("two", 0, 1)))) == "2 or 3 seeds"


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
    assert told == ["smoke scale, 2 seeds; mean over seeds; blank: nothing was earned that a layer could keep"]
    assert (tmp_path / "figure.png").exists()
