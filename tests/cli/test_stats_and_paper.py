from __future__ import annotations

import json
from pathlib import Path

import pytest

from dr3.cli import paper, stats
from dr3.errors import UserError
from dr3.stats import CheckpointResult, read_results, write_results


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "160")
    file = tmp_path / "results.jsonl"
    write_results(
        file,
        [
            CheckpointResult(name, task, seed, step, (base + seed + step / 10,))
            for name, base in (("CQL", 20.0), ("CQL+DR3", 40.0))
            for task in ("atari/Breakout@1%", "minatar/breakout@1%")
            for seed in range(3)
            for step in (10, 20)
        ],
    )
    return file


def test_stats_puts_the_papers_column_beside_its_own(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stats.main([str(results), "--replicates", "200"]) == 0
    text = capsys.readouterr().out
    assert "21.8 ± 3.7" in text  # CQL, final, in the paper
    assert "21.7 ± 0.5" in text  # CQL, average
    # (20 + 1 + 2 - 1.3) / 103.6 = 20.9 %, one run more or less is 1 / 103.6
    assert "20.9 ± 1.0 (3)" in text
    assert "CQL+DR3 over CQL" in text
    assert "1.00 (1.00, 1.00)" in text
    assert "significant and meaningful" in text
    assert "raw returns, no normaliser known: minatar/breakout@1%" in text


def test_stats_on_a_narrow_screen_cuts_no_number_and_no_name(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    assert stats.main([str(results), "--replicates", "50"]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    assert ["atari/Breakout@1%", "CQL", "20.9", "±", "1.0", "(3)", "21.8", "±", "3.7"] in rows
    assert ["CQL+DR3", "43.0", "±", "1.00", "(3)", "–"] in rows
    assert "…" not in text


def test_stats_writes_json_and_pictures(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "pictures"
    assert stats.main([str(results), "--replicates", "50", "--json", "--figures", str(folder)]) == 0
    final = json.loads(capsys.readouterr().out)["measures"]["final"]
    assert final["tasks"] == ["atari/Breakout@1%", "minatar/breakout@1%"]
    assert final["paper"]["CQL"] == {"atari/Breakout@1%": "21.8 ± 3.7", "minatar/breakout@1%": ""}
    assert len(list(folder.glob("*.svg"))) == 7


def test_stats_says_what_is_missing(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results.write_text("\n".join(results.read_text().splitlines()[:-1]))
    with pytest.raises(UserError, match="seed 2: no checkpoint at step 20"):
        stats.main([str(results)])
    assert stats.main([str(results), "--missing", "ignore", "--replicates", "50"]) == 0
    assert "Missing: CQL+DR3, minatar/breakout@1%, seed 2" in capsys.readouterr().out
    with pytest.raises(UserError, match="no algorithm named 'BC'"):
        stats.main([str(results), "--missing", "ignore", "--baseline", "BC"])


def test_stats_of_one_run_per_task_give_no_interval_and_no_verdict(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_results(results, [row for row in read_results(results) if row.seed == 0])
    assert stats.main([str(results), "--only", "atari/", "--replicates", "50"]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    # (22 - 1.3) / 103.6 = 20.0 %, (42 - 1.3) / 103.6 = 39.3 %; 20 / 103.6 = 19.3 % between them
    assert ["CQL", *(["20.0", "(–)"] * 3), "80.0", "(–)"] in rows
    assert ["CQL+DR3", "over", "CQL", "1.00", "(–)", "19.3", "(–)", "–"] in rows
    assert "significant" not in text
    assert "because a task has a single run" in text


def test_stats_of_small_raw_returns_have_three_digits_and_no_optimality_gap(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_results(
        results, [CheckpointResult("DQN", "grid16", seed, 1, (value,)) for seed, value in enumerate((0.0123, 0.0145))]
    )
    assert stats.main([str(results), "--replicates", "200"]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    # 0.0134 on average; the deviation is 0.0022 / sqrt(2)
    assert ["grid16", "0.0134", "±", "0.00156", "(2)"] in rows
    assert ["DQN", *(["0.0134", "(–)"] * 3)] in rows  # two runs of one task have no interval
    assert "They have no optimality gap" in text
    assert "100" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (0.5, "0.500"), (-43.21, "-43.2"), (100.4, "100"), (999.7, "1000"), (12345.6, "12346")],
)
def test_raw_returns_are_written_without_an_exponent(value: float, text: str) -> None:
    assert stats._three_digits(value) == text


def test_stats_of_some_of_the_tasks(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stats.main([str(results), "--only", "atari/", "--replicates", "50"]) == 0
    text = capsys.readouterr().out
    assert "Over 1 tasks" in text
    assert "minatar" not in text
    with pytest.raises(UserError, match=r"No task's name contains 'pong'; there are atari/Breakout@1%, minatar/"):
        stats.main([str(results), "--only", "pong"])


def test_show_lists_and_prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert paper.main(["show"]) == 0
    listed = capsys.readouterr().out
    assert "atari-rem-10" in listed
    assert "hyperparameters-dr3" in listed
    paper.main(["show", "antmaze"])
    assert "84.00 ± 2.67" in capsys.readouterr().out
    paper.main(["show", "antmaze", "--csv"])
    assert "antmaze-umaze-v2,CQL,2M,84.0,2.67,," in capsys.readouterr().out
    paper.main(["show", "brac", "--json"])
    assert len(json.loads(capsys.readouterr().out)["cells"]) == 60
    paper.main(["show", "hyperparameters-dr3"])
    assert "not stated" in capsys.readouterr().out
    paper.main(["show", "hyperparameters-dr3", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["value"] == 0.03
    paper.main(["show", "--csv"])
    assert capsys.readouterr().out.startswith("name,place,title\n")


def test_show_refuses_in_one_sentence() -> None:
    with pytest.raises(UserError, match="no table named 'nothing'"):
        paper.main(["show", "nothing"])
    with pytest.raises(UserError, match="exclude each other"):
        paper.main(["show", "brac", "--json", "--csv"])
    with pytest.raises(UserError, match="exclude each other"):
        paper.main(["audit", "--json", "--markdown"])


def test_audit_prints_the_verdicts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert paper.main(["audit"]) == 0
    text = capsys.readouterr().out
    assert "38.7 - 24.9 = 13.8" in text
    assert "does not follow" in text
    paper.main(["audit", "--json"])
    checks = json.loads(capsys.readouterr().out)
    assert {check["verdict"] for check in checks} == {"follows", "possible", "does not follow"}


def test_the_stored_page_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    paper.main(["audit", "--markdown"])
    page = Path(__file__).parents[2] / "docs" / "paper-audit.md"
    assert page.read_text(encoding="utf-8") == capsys.readouterr().out
