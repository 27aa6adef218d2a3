"""Every experiment runs from its description to its verdict."""

from __future__ import annotations

import json
import shutil

import pytest

from dr3.paper.experiments import EXPERIMENTS, Result, reproduce, write_record
from dr3.sweeps import InProcess

UNTRAINED = ("table-E.1", "table-F.10")


@pytest.mark.parametrize("id", EXPERIMENTS)
def test_an_experiment_comes_to_a_verdict(smoke, id):
    plan, results = smoke
    experiment, result = EXPERIMENTS[id], results[id]
    folder = plan.folder(experiment)
    if id in UNTRAINED:
        assert result.verdict in ("shows", "does not show")
    else:
        assert result.verdict == "cannot be compared"
    blocked = plan.designs[id].blocked
    assert len(result.answers) == (0 if blocked else len(experiment.checks))
    if blocked is None and experiment.picture is not None:
        assert (folder / "figure.png").stat().st_size > 5_000
    assert result.why or result.verdict == "shows"
    record = json.loads((folder / "result.json").read_text())
    assert record["claim"] == experiment.claim
    assert record["command"] == f"dr3 reproduce {id} --scale smoke"
    assert Result.read(folder) == result
    page = (folder / "report.html").read_text()
    assert experiment.title.replace("'", "&#x27;") in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_experiments_share_runs(smoke):
    plan, _ = smoke
    wanted = [task.name for design in plan.designs.values() for task in (*design.sources, *design.tasks)]
    there = [folder for folder in plan.folders.runs.iterdir() if (folder / "metrics.jsonl").exists()]
    assert len(there) == len(set(wanted)) < len(wanted) / 2


def test_a_rerun_trains_nothing_again(smoke):
    plan, results = smoke
    times = {file: file.stat().st_mtime_ns for file in plan.folders.runs.glob("*/status.json")}
    again = reproduce(
        type(plan)((EXPERIMENTS["figure-5"],), "smoke", plan.data, plan.out), engine=InProcess(), show=False
    )
    assert again[0].answers == results["figure-5"].answers
    assert {file: file.stat().st_mtime_ns for file in times} == times


def test_the_record_leaves_nothing_out(smoke, tmp_path):
    plan, _ = smoke
    found = write_record(tmp_path / "docs" / "reproduction.md", plan.out, "smoke")
    assert list(found) == list(EXPERIMENTS)
    page = (tmp_path / "docs" / "reproduction.md").read_text()
    for experiment in EXPERIMENTS.values():
        assert f"\n## {experiment.id}\n" in page
        assert f"`dr3 reproduce {experiment.id} --scale smoke`" in page
    assert (tmp_path / "docs" / "images" / "reproduction" / "table-1.png").exists()
    assert "images/reproduction/table-1.png" in page
    assert "43.7 (39.6, 48.6)" in page


def test_what_was_not_run_is_in_the_record_too(smoke, tmp_path):
    plan, _ = smoke
    shutil.copytree(plan.out / "smoke" / "table-E.1", tmp_path / "smoke" / "table-E.1")
    assert list(write_record(tmp_path / "record.md", tmp_path, "smoke")) == ["table-E.1"]
    assert (tmp_path / "record.md").read_text().count("| not run |") == len(EXPERIMENTS) - 1 == 39
