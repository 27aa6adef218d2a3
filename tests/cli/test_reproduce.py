"""`dr3 reproduce` on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dr3.cli import invoke
from dr3.paper.experiments import EXPERIMENTS, Result, estimate


def test_the_list_is_complete_and_knows_the_last_result(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert invoke(["reproduce", "table-E.1", "--scale", "smoke"]) == 0
    assert "does not show" in capsys.readouterr().out  # 19 of its 20 rows: policies are tried in fewer steps here
    assert invoke(["reproduce", "--list", "--scale", "smoke"]) == 0
    said = capsys.readouterr().out
    for id in EXPERIMENTS:
        assert f"{id} " in said or f"{id}\n" in said
    assert re.search(r"table-E\.1 +DOES NOT SHOW", said)
    lines = said.splitlines()
    assert len(lines) < 40  # of one screen, with the command above it
    assert max(map(len, lines)) <= 80
    assert invoke(["reproduce", "--list", "table-E.1"]) == 0
    assert "smoke: does not show" in capsys.readouterr().out


def test_a_record_without_evidence_holds_what_needs_no_runs(tmp_path, capsys):
    where = ["--out", str(tmp_path / "nowhere"), "--evidence", str(tmp_path / "none")]
    assert invoke(["reproduce", "--record", str(tmp_path / "page.md"), *where]) == 0
    assert "2 results of 44" in capsys.readouterr().out
    assert re.findall(r"^## (table-.*)$", (tmp_path / "page.md").read_text(), re.M) == ["table-E.1", "table-F.10"]


def test_a_damaged_result_is_named_in_the_list_beside_all_others(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    assert invoke(["reproduce", "table-E.1", "--scale", "smoke"]) == 0
    damaged = Path("reproduction") / "laptop" / "table-1" / "result.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text('{"id": "tab')
    capsys.readouterr()
    assert invoke(["reproduce", "--list"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"table-1 +damaged", said)
    assert f"{damaged} is damaged" in said
    assert invoke(["reproduce", "--list", "table-1", "table-E.1"]) == 0
    said = capsys.readouterr().out
    assert "smoke: does not show" in said
    assert f"laptop: {damaged} is damaged" in said


def test_runs_that_failed_are_exit_code_1(tmp_path, monkeypatch):
    verdicts = []

    def fail(plan, **_):
        verdicts.append(Result("table-E.1", "smoke", "cannot be compared", "a reason of any words", failed=True))
        return verdicts

    monkeypatch.setattr("dr3.paper.experiments.reproduce", fail)
    assert invoke(["reproduce", "table-E.1", "--scale", "smoke", "--out", str(tmp_path)]) == 1
    assert verdicts


def test_a_dry_run_shows_grid_settings_data_and_time(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(estimate, "speed", lambda kind: 100.0)
    monkeypatch.setenv("COLUMNS", "200")
    where = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    assert invoke(["reproduce", "table-F.4", "figure-3", "--scale", "paper", "--dry-run", *where]) == 0
    said = capsys.readouterr().out
    assert "Asterix, Breakout, Pong" in said
    assert "6,250,000" in said
    assert "learning_rate 5e-05" in said
    assert "alpha 1.0" in said
    assert "regularizers: dr3:0.03, none" in said
    assert "Zaxxon/5/replay_logs: missing" in said
    # Two kinds of updates, each 17 games x 5 seeds x 6.25M, at 100 a second; and two of COG, 4 data sets x 3 x 500,000.
    assert "2,984.7 hours" in said
    assert "cog/drawer_task.npz: missing" in said
    assert "cog/blocked_drawer_2_prior.npz: missing" in said
    assert invoke(["reproduce", "table-A.2", "--scale", "laptop", "--dry-run", *where]) == 0
    assert "kitchen-partial-100.npz: to be made" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Name figures and tables"),
        (["table-1", "--all"], "Name figures and tables"),
        (["table-9"], "The paper has no 'table-9'"),
        (["table-1", "--keep", "runs"], "only --list takes ids"),
        (["--all", "--record", "page.md"], "--list, --record and --keep do nothing else"),
        (["--list", "--record", "page.md"], "say one alone"),
        (["table-E.1", "--workers", "2", "--engine", "ray"], "--workers belongs to the engine local"),
        (["table-E.1", "--gpus", "1"], "--gpus belongs to the engine ray"),
        (["table-E.1", "--out", "file"], "file/laptop/runs cannot be a folder"),
        (["figure-5", "--data", "file"], "file cannot be a folder"),
        (["table-F.4", "--scale", "paper"], "85 data sets are missing"),
    ],
)
def test_mistakes_are_one_sentence(arguments, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert invoke(["reproduce", *arguments]) == 2
    assert sentence in capsys.readouterr().err
