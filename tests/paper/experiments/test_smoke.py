"""Every experiment runs from its description to its verdict."""

from __future__ import annotations

import dataclasses
import json
import shutil

import pytest

from dr3.errors import UserError
from dr3.paper.experiments import ALL, EXPERIMENTS, Keeping, Plan, Result, judged, keep_sweep, reproduce, write_record
from dr3.sweeps import InProcess, Task

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
    groups = len({arm.group for arm in plan.designs[id].arms}) or 1
    assert len(result.answers) == (0 if blocked else groups * len(experiment.checks))
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


def test_a_verdict_follows_from_evidence_alone(smoke, tmp_path):
    plan, results = smoke
    alone = dataclasses.replace(plan, data=tmp_path / "nowhere", out=tmp_path / "out", kept=plan.out / "evidence")
    assert alone.missing() == []  # names do not depend on where data and runs lie
    for result in judged(alone):
        assert dataclasses.replace(result, seconds=0) == dataclasses.replace(results[result.id], seconds=0)


def test_a_bundle_is_small_and_knows_no_place(smoke):
    plan, _ = smoke
    files = list(plan.evidence.glob("*.json"))
    assert {file.stem for file in files} == {task.name for design in plan.designs.values() for task in design.tasks}
    for file in files:
        text = file.read_text()
        assert len(text) < 50_000
        assert str(plan.out) not in text
        record = json.loads(text)
        assert {"commit", "packages", "seconds", "processor"} <= set(record)
        assert Task.from_json(record["task"] | {"needs": []}).steps == record["task"]["steps"]


def test_what_has_no_evidence_is_counted(smoke, tmp_path):
    plan, _ = smoke
    shutil.copytree(plan.evidence, tmp_path / "evidence" / "smoke")
    experiment = EXPERIMENTS["figure-5"]
    (tmp_path / "evidence" / "smoke" / f"{plan.designs[experiment.id].tasks[0].name}.json").unlink()
    (result,) = judged(Plan((experiment,), "smoke", plan.data, tmp_path))
    assert (result.verdict, result.why) == ("cannot be compared", "1 of 4 populations have no evidence yet")
    assert not result.failed


def test_a_sweep_leaves_evidence_too(smoke, tmp_path):
    plan, _ = smoke
    found = keep_sweep(plan.folders.runs, plan.evidence, Keeping())
    assert len(found) >= len(list(plan.evidence.glob("*.json")))  # runs that others start from are there too
    with pytest.raises(UserError, match="no finished task"):
        keep_sweep(tmp_path, tmp_path, Keeping())


def test_the_record_leaves_nothing_out(smoke, tmp_path):
    plan, _ = smoke
    found = write_record(tmp_path / "docs" / "reproduction.md", plan)
    assert list(found) == list(EXPERIMENTS)
    page = (tmp_path / "docs" / "reproduction.md").read_text()
    for experiment in EXPERIMENTS.values():
        assert f"\n## {experiment.id}\n" in page
        assert f"`dr3 reproduce {experiment.id} --scale smoke`" in page
    assert (tmp_path / "docs" / "images" / "reproduction" / "table-1.png").exists()
    assert "images/reproduction/table-1.png" in page
    assert "43.7 (39.6, 48.6)" in page


def test_what_has_no_evidence_is_named_in_the_record(smoke, tmp_path):
    plan = Plan(tuple(EXPERIMENTS.values()), "smoke", tmp_path, tmp_path)
    assert list(write_record(tmp_path / "record.md", plan)) == list(UNTRAINED)
    page = (tmp_path / "record.md").read_text()
    named = page.partition("makes it): ")[2].partition(".\n")[0].split(", ")
    assert named == [id for id in ALL if id not in UNTRAINED]
    assert f"and {len(EXPERIMENTS) - len(UNTRAINED)} have no evidence yet" in page
