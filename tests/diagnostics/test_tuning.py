from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dr3.cli import invoke
from dr3.cli.tune import sparkline
from dr3.data import write_npz
from dr3.diagnostics import tuning as tuning_module
from dr3.diagnostics.measure import Measurements
from dr3.diagnostics.tuning import tuning_of
from dr3.errors import UserError
from dr3.regularizers import DR3


def runs_of(regularizers, diverged=None) -> Any:
    members = [SimpleNamespace(regularizer=regularizer) for regularizer in regularizers]
    return SimpleNamespace(members=members, status={"diverged": diverged or {}}, path="runs/x")


@pytest.fixture
def measured(monkeypatch):
    """Q-values of each member at two checkpoints, given as the share of them beyond -10 … 10 and their mean."""

    def plant(outside, mean):
        mean = np.array(mean, float)
        columns = {"q/outside": np.array(outside, float), "q/mean": mean, "q/most": mean + 1, "q/least": mean - 1}
        columns |= {"q/largest_return": np.full(mean.shape, 10.0), "q/lowest_return": np.full(mean.shape, -10.0)}
        found = Measurements(np.array([0, 100]), columns, 8)
        monkeypatch.setattr(tuning_module, "measure", lambda runs, data, gradients: found)

    return plant


def test_the_smallest_coefficient_whose_values_stay(measured):
    """Up and away with 0.001, down with 0.01, there and back again with 0.5, never away with 1."""
    measured([[0, 0.5], [0, 0.2], [0.9, 0.04], [0, 0]], [[0, 50], [0, -30], [90, 9], [0, 1]])
    tuning = tuning_of(runs_of([DR3(0.01), DR3(0.001), DR3(0.5), DR3(1.0)]))
    assert [trial.coefficient for trial in tuning.trials] == [0.001, 0.01, 0.5, 1.0]
    assert [trial.diverged for trial in tuning.trials] == [True, True, False, False]
    assert tuning.chosen == 0.5
    assert "below the lowest possible return" in str(tuning.trials[0].verdicts)
    assert "above the largest possible return" in str(tuning.trials[1].verdicts)
    assert tuning.to_json()["trials"][2]["mean_q"] == [[90.0, 9.0]]


def test_one_seed_that_diverges_is_enough(measured):
    measured([[0, 0], [0, 0], [0, 0]], [[0, 1], [0, 1], [0, 1]])
    assert tuning_of(runs_of([DR3(0.1), DR3(0.1), DR3(0.2)], {"1": 40})).chosen == 0.2
    assert tuning_of(runs_of([DR3(0.1), DR3(0.1), DR3(0.1)], {"1": 40})).chosen is None
    with pytest.raises(UserError, match="a member without a regularizer"):
        tuning_of(runs_of([None, DR3(0.1), DR3(0.2)]))


def test_curves_in_a_line():
    assert sparkline([0, 1, 7]) == "▁▂█"
    assert sparkline([5, 5, np.nan]) == "▁▁×"


def test_the_command(tmp_path, logged, capsys):
    write_npz(tmp_path / "logged.npz", logged)
    line = f"tune dqn --data {tmp_path / 'logged.npz'} --steps 4 --hidden 4 --batch-size 4 --out {tmp_path / 'run'}"
    assert invoke([*line.split(), "--coefficients", "0.1", "0.001"]) == 0
    out = capsys.readouterr().out
    assert "c0 = 0.001, the smallest that was tried: Q-values diverge with none of them" in " ".join(out.split())
    assert (tmp_path / "run" / "tuning.json").exists()
    assert (tmp_path / "run" / "tuning.png").exists()
