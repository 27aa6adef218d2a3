from __future__ import annotations

import json

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.stats import CheckpointResult, ScoreTable, as_dict, comparison_pairs, profile_thresholds, summarise


def rows(algorithm: str, tasks: str, seeds: int, offset: float) -> list[CheckpointResult]:
    return [
        CheckpointResult(algorithm, task, seed, step, (offset + seed + step,), score=offset + seed + step)
        for task in tasks
        for seed in range(seeds)
        for step in (1, 2)
    ]


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def test_pairs_for_comparison() -> None:
    four = ("CQL", "CQL+DR3", "REM", "REM + DR3")
    assert comparison_pairs(four, None) == [("CQL+DR3", "CQL"), ("REM + DR3", "REM")]
    assert comparison_pairs(four, "REM") == [("CQL", "REM"), ("CQL+DR3", "REM"), ("REM + DR3", "REM")]
    assert comparison_pairs(("A", "B", "C"), None) == [("B", "A"), ("C", "A")]
    assert comparison_pairs(("A",), None) == []
    with pytest.raises(UserError, match="'D' in the results, only A, B"):
        comparison_pairs(("A", "B"), "D")


def test_final_and_average() -> None:
    table = ScoreTable(rows("A", "xy", 3, 0.0) + rows("A+DR3", "xy", 3, 10.0))
    final, average = summarise(table, generator(), replicates=100)
    assert (final.name, average.name) == ("final", "average")
    assert final.intervals["A"]["mean"].estimate == 3.0  # step 2 plus seeds 0, 1, 2
    assert average.intervals["A+DR3"]["median"].estimate == 12.5
    (comparison,) = final.comparisons
    assert (comparison.algorithm, comparison.baseline) == ("A+DR3", "A")
    assert comparison.improvement.probability.estimate == 1.0
    assert comparison.iqm_difference.estimate == 10.0
    everything = json.loads(json.dumps(as_dict(table, [final, average])))
    assert everything["measures"]["final"]["scores"]["A"] == [[2, 2], [3, 3], [4, 4]]
    assert everything["measures"]["final"]["comparisons"][0]["significant"] is True


def test_one_checkpoint_has_no_average() -> None:
    assert [
        m.name for m in summarise(ScoreTable([CheckpointResult("A", "x", 0, 1, (1.0,))]), generator(), replicates=5)
    ] == ["final"]


def test_one_checkpoint_beside_the_untrained_policy_has_no_average() -> None:
    table = ScoreTable([CheckpointResult("A", "x", 0, step, (1.0,)) for step in (0, 10)])
    assert [measure.name for measure in summarise(table, generator(), replicates=5)] == ["final"]


def test_raw_returns_have_no_optimality_gap() -> None:
    known = [CheckpointResult("A", "x", seed, 1, (1.0,), score=50.0) for seed in range(2)]
    raw = [CheckpointResult("A", "y", seed, 1, (0.25,)) for seed in range(2)]
    (measure,) = summarise(ScoreTable(known), generator(), replicates=5)
    assert measure.intervals["A"]["optimality gap"].estimate == 50
    (measure,) = summarise(ScoreTable(known + raw), generator(), replicates=5)
    assert list(measure.intervals["A"]) == ["IQM", "median", "mean"]


def test_a_raw_task_that_is_left_out_takes_no_optimality_gap_away() -> None:
    known = [CheckpointResult(name, "x", seed, 1, (1.0,), score=50.0) for name in "AB" for seed in range(2)]
    raw = [CheckpointResult("A", "y", seed, 1, (0.25,)) for seed in range(2)]
    (measure,) = summarise(ScoreTable(known + raw), generator(), replicates=5, missing="ignore")
    assert measure.left_out == ("y",)
    assert "optimality gap" in measure.intervals["A"]


def test_limits_that_there_are_not_are_null_in_json() -> None:
    table = ScoreTable(rows("A", "x", 1, 0.0) + rows("A+DR3", "x", 1, 10.0))
    text = json.dumps(as_dict(table, summarise(table, generator(), replicates=5)), allow_nan=False)
    final = json.loads(text)["measures"]["final"]
    assert final["intervals"]["A"]["mean"] == {"estimate": 2.0, "lower": None, "upper": None, "level": 0.95}
    (comparison,) = final["comparisons"]
    assert comparison["improvement"]["probability"]["lower"] is None
    assert (comparison["significant"], comparison["meaningful"]) == (False, False)


def test_holes_are_an_error_or_named() -> None:
    ragged = rows("A", "xy", 3, 0.0) + rows("B", "x", 3, 5.0)[:-1]
    table = ScoreTable(ragged)
    with pytest.raises(UserError, match="4 runs are missing for the final score, the first being B, x, seed 2"):
        summarise(table, generator())
    final = summarise(table, generator(), replicates=50, missing="ignore")[0]
    assert final.matrices.tasks == ("x",)
    assert final.left_out == ("y",)
    assert [(hole.algorithm, hole.seed) for hole in final.matrices.holes] == [("B", 2)]
    assert as_dict(table, [final])["measures"]["final"]["scores"]["B"] == [[7.0], [8.0], [None]]
    with pytest.raises(UserError, match="no task on which every algorithm"):
        summarise(ScoreTable(rows("A", "x", 1, 0.0) + rows("B", "y", 1, 0.0)), generator(), missing="ignore")


def test_pairing_needs_the_same_seeds() -> None:
    same = ScoreTable(rows("A", "x", 3, 0.0) + rows("B", "x", 3, 5.0))
    final = summarise(same, generator(), paired=True, replicates=50)[0]
    assert final.comparisons[0].iqm_difference.upper == pytest.approx(5.0)
    other = ScoreTable(rows("A", "x", 3, 0.0) + rows("B", "x", 2, 5.0))
    with pytest.raises(UserError, match="different seeds"):
        summarise(other, generator(), paired=True, replicates=50)


def test_thresholds_span_the_scores() -> None:
    taus = profile_thresholds({"A": np.array([[0.0, 100.0]]), "B": np.array([[np.nan, 50.0]])}, points=5)
    assert taus[0] < 2.0
    assert taus[-1] > 98.0
    assert np.all(np.diff(profile_thresholds({"A": np.ones((2, 2))})) > 0)
