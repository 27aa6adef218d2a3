"""The comparison of regularizers, on run folders whose numbers are written by hand, and end to end."""

from __future__ import annotations

import json
import shutil
from typing import Any

import numpy as np
import pytest

from dr3.cli import invoke
from dr3.cli.compare import _returns
from dr3.errors import UserError
from dr3.methods import DQN
from dr3.regularizers import DR3, FeatureNorm
from dr3.reports.compare import Side, as_json, compare, last_median, panels, score
from dr3.runs import Runs
from dr3.training import train


@pytest.fixture(scope="module")
def trained(logged, tmp_path_factory):
    method = DQN(hidden=(4,), batch_size=4)
    out = tmp_path_factory.mktemp("compared") / "run"
    return train(
        logged,
        method,
        regularizer=[None, DR3(0.1), FeatureNorm(0.1)],
        steps=2,
        seeds=2,
        evaluate_every=1,
        env=None,
        out=out,
        progress=False,
    )


@pytest.fixture
def by_hand(trained, tmp_path):
    """That run with the returns 1, 3 | 2, 6 | 4, nothing: three regularizers, two seeds each, at steps 0, 1 and 2."""
    folder = tmp_path / "run"
    shutil.copytree(trained.path, folder)
    returns = {0: [1, 1], 1: [3, 3], 2: [2, 4], 3: [6, 6], 4: [4, 4], 5: [0]}
    rows = [{"step": 0, "member": member, "returns": [99.0], "evaluation/return": 99.0} for member in returns]
    for member, values in returns.items():
        for step, value in enumerate(values, start=1):
            rows.append({"step": step, "member": member, "returns": [value], "evaluation/return": value})
    (folder / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "status.json").write_text(json.dumps({"step": 2, "finished": True, "diverged": {"5": 1}}))
    return Runs(folder)


def test_numbers_by_hand(by_hand):
    sides: list[Any] = compare(by_hand, replicates=200)
    none, dr3, norm = sides
    assert [side.regularizer for side in (none, dr3, norm)] == ["none", "dr3:0.1", "norm:0.1"]
    assert (none.final.mean, none.final.gain) == (2, None)
    # The untrained policy at step 0 is in no average.
    assert (dr3.final.mean, dr3.average.mean) == (5, (3 + 6) / 2)
    assert dr3.final.gain.estimate == 3
    # Both seeds gain 3: limits of (3, 3), and a probability of 1 (1, 1), would pass for certainty.
    assert not dr3.final.gain.has_limits
    assert dr3.average.gain.estimate == 2.5
    assert (dr3.final.interval, dr3.final.improvement) == (None, None)
    # The member that diverged keeps its last return.
    assert (norm.final.mean, norm.diverged, none.diverged) == (2, 1, 0)
    assert norm.final.gain.estimate == 0


def test_instruments_are_medians_at_the_end(by_hand):
    dr3 = compare(by_hand, replicates=10)[1]
    assert dr3.measured["dot product"] == np.median(by_hand.metrics["features/dot_product"][2:4, -1])
    assert set(dr3.measured) == {"dot product", "cosine", "srank", "mean Q"}


def test_three_seeds_have_limits_paired_by_seed():
    values, first = np.array([[5.0], [7.0], [9.0]]), np.array([[2.0], [4.0], [6.0]])
    found: Any = score(values, first, paired=True, replicates=200)
    assert (found.gain.lower, found.gain.upper) == pytest.approx((3, 3))  # each seed gains 3: pairs leave no spread
    assert found.interval.has_limits
    assert found.improvement.estimate == pytest.approx(8 / 9)  # of nine pairs all but 5 over 6


def test_a_single_seed_has_a_gain_without_limits_and_no_probability():
    found: Any = score(np.array([[2.0]]), np.array([[1.5]]), paired=True, replicates=10)
    assert (found.mean, found.interval, found.improvement) == (2, None, None)
    assert found.gain.estimate == 0.5
    assert not found.gain.has_limits


def test_the_gain_of_a_single_seed_is_printed_without_limits():
    found = score(np.array([[2.0]]), np.array([[1.5]]), paired=True, replicates=10)
    side = Side("dr3:0.1", seeds=1, diverged=0, final=found, average=found, measured={})
    assert _returns(side) == ["dr3:0.1", "2", "+0.5 (–)", "2", "+0.5 (–)"]


def test_limits_that_there_are_not_are_null_in_json(by_hand):
    found = score(np.array([[2.0]]), np.array([[1.5]]), paired=True, replicates=10)
    side = Side("dr3:0.1", seeds=1, diverged=0, final=found, average=found, measured={})
    record = json.loads(json.dumps(as_json(by_hand, [side]), allow_nan=False))
    assert record["sides"][0]["final"]["gain"] == {"estimate": 0.5, "lower": None, "upper": None, "level": 0.95}


def test_the_last_median_is_of_what_was_last_known():
    assert last_median(np.array([[1, 2, np.nan], [5, 5, 7]])) == (2 + 7) / 2
    assert np.isnan(last_median(np.zeros((2, 0))))


def test_it_can_be_written_and_drawn(by_hand):
    record = json.loads(json.dumps(as_json(by_hand, compare(by_hand, replicates=10))))
    assert record["sides"][1]["final"]["gain"]["estimate"] == 3
    drawn = panels(by_hand)
    assert [panel.title for panel in drawn] == ["return", "dot product", "cosine", "srank", "mean Q"]
    assert {label: values.shape for label, (_, values) in drawn[0].lines.items()} == {
        "DQN, 2 seeds": (2, 3),
        "DQN + DR3 0.1, 2 seeds": (2, 3),
        "DQN + feature norm 0.1, 2 seeds": (2, 3),
    }


def test_without_a_world_there_are_instruments_only(trained):
    sides = compare(trained)
    assert sides[1].final is None
    assert sides[1].measured["cosine"] <= 1
    assert [panel.title for panel in panels(trained)] == ["dot product", "cosine", "srank", "mean Q"]


def test_a_sweep_of_methods_is_no_comparison_of_regularizers(logged, tmp_path):
    methods = [DQN(hidden=(4,), batch_size=4, learning_rate=rate) for rate in (0.1, 0.2)]
    runs = train(logged, methods, steps=1, env=None, out=tmp_path / "run", progress=False)
    with pytest.raises(UserError, match="varies its method's settings"):
        compare(runs)


def test_the_command(tmp_path, capsys):
    out = tmp_path / "run"
    words = "--data grid16smoothobs:size=64 --steps 4 --seeds 2 --hidden 4 --batch-size 8 --metrics-every 2"
    code = invoke(["compare", "dqn", *words.split(), "--evaluate-every", "2", "--out", str(out)])
    assert code == 0
    record = json.loads((out / "comparison.json").read_text())
    assert [side["regularizer"] for side in record["sides"]] == ["none", "dr3:0.03"]
    assert (out / "comparison.png").stat().st_size > 1000
    assert "Everything is in" in capsys.readouterr().out
