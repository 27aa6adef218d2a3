from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.stats import CheckpointResult, ScoreTable, append_results, read_results, write_results

ROW = '{"algorithm": "CQL", "task": "t", "seed": 0, "step": 1, "returns": [1, 2.5]}'


def result(
    algorithm: str = "CQL", task: str = "t", seed: int = 0, step: int = 1, *returns: float, score=None
) -> CheckpointResult:
    return CheckpointResult(algorithm, task, seed, step, returns or (1.0,), score)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    rows = [result("CQL", "t", 0, 1, 1.0, 2.0), result("CQL", "t", 0, 2, 0.1, score=7.5)]
    write_results(file, rows)
    assert read_results(file) == rows
    append_results(file, [result("CQL+DR3")])
    assert read_results(file) == [*rows, result("CQL+DR3")]
    assert file.read_text().count("\n") == 3
    numpy_row = CheckpointResult("a", "t", 3, 1, tuple(np.array([0.5, 0.25], np.float32)), None)
    append_results(tmp_path / "new.jsonl", [numpy_row])
    assert read_results(tmp_path / "new.jsonl")[0].returns == (0.5, 0.25)


def test_a_torn_last_line_is_cut_and_a_whole_one_kept(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(ROW + "\n" + ROW[:30])
    append_results(file, [result(step=5)])
    assert [row.step for row in read_results(file)] == [1, 5]
    file.write_text(ROW)  # whole, only the newline is missing
    append_results(file, [result(step=5)])
    assert [row.step for row in read_results(file)] == [1, 5]


def test_nan_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_results(tmp_path / "results.jsonl", [result("CQL", "t", 0, 1, float("nan"))])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (ROW[:30], "line 2: this is not a complete JSON object"),
        ("[1]", "line 2: a row is a JSON object"),
        (ROW.replace('"seed": 0, ', ""), "line 2: the field 'seed' is missing"),
        (ROW.replace('"seed": 0', '"seed": "0"'), "line 2: the field 'seed' must be of type int"),
        (ROW.replace("2.5", "NaN"), "line 2: returns and score must be finite"),
        (ROW.replace("2.5", '"2"'), "line 2: returns and score must be finite"),
        ("[" * 100_000, "line 2: this is not a complete JSON object"),
        (ROW.replace("2.5", "9" * 5000), "line 2: this is not a complete JSON object"),
        (ROW.replace("2.5", "1" + "0" * 400), "line 2: this is not a complete JSON object"),  # beyond a float
        (ROW.replace("[1, 2.5]", "[]"), "line 2: it has neither returns nor a score"),
        (ROW.replace("2.5", "3"), "disagree about CQL, t, seed 0, step 1"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(ROW + "\n" + line + "\n")
    with pytest.raises(UserError, match=message):
        read_results(file)


def test_the_same_row_twice_counts_once(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(ROW + "\n" + ROW + "\n")
    assert len(read_results(file, file)) == 1


def test_files_that_are_not_there_or_empty(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such results file"):
        read_results(tmp_path / "absent.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(UserError, match="no result"):
        read_results(tmp_path / "empty.jsonl")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not a text file"):
        read_results(tmp_path / "binary.jsonl")
    with pytest.raises(UserError, match="no results file"):
        read_results()


def test_matrices_name_every_hole() -> None:
    rows = [
        result("A", "x", 0, 10, 1.0),
        result("A", "x", 0, 20, 3.0),
        result("A", "x", 1, 10, 5.0),  # stopped early
        result("A", "y", 0, 10, 7.0, 9.0),
        result("B", "x", 4, 10, 0.0),
        result("B", "x", 4, 20, 2.0),
    ]
    table = ScoreTable(rows)
    final = table.final()
    assert final.tasks == ("x", "y")
    assert final.seeds == {"A": (0, 1), "B": (4,)}
    np.testing.assert_array_equal(final.scores["A"], [[3, 8], [np.nan, np.nan]])
    np.testing.assert_array_equal(final.scores["B"], [[2, np.nan]])
    assert [str(hole) for hole in final.holes] == [
        "A, x, seed 1: no checkpoint at step 20 (its last is 10)",
        "A, y, seed 1: no run",
        "B, y, seed 4: no run",
    ]
    assert final.common_tasks == ("x",)
    only = final.on(final.common_tasks)
    assert only.scores["A"].shape == (2, 1)
    assert len(only.holes) == 1
    np.testing.assert_array_equal(table.average().scores["A"], [[2, 8], [np.nan, np.nan]])
    np.testing.assert_array_equal(table.average(count=1).scores["B"], [[2, np.nan]])
    np.testing.assert_array_equal(table.at(10).scores["A"], [[1, 8], [5, np.nan]])
    assert table.common_steps == (10,)
    assert table.skipped_steps == (20,)
    assert table.over_training()["A"].shape == (2, 2, 1)


def test_scales_are_kept_apart() -> None:
    def double(task: str, value: float) -> float | None:
        return 2 * value if task == "known" else None

    table = ScoreTable(
        [result("A", "known", 0, 1, 1.0, 2.0), result("A", "given", 0, 1, 1.0, score=50.0), result("A", "other")],
        double,
    )
    assert table.scales == {"known": "normalised", "given": "score", "other": "raw"}
    np.testing.assert_array_equal(table.final().scores["A"], [[50, 3, 1]])
    with pytest.raises(UserError, match="t: some rows have a score"):
        ScoreTable([result(), result(seed=1, score=3.0)])


def test_no_common_checkpoint_no_curve() -> None:
    with pytest.raises(UserError, match="no checkpoint in common"):
        ScoreTable([result(task="x", step=1), result(task="y", step=2)]).over_training()
