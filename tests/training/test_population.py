from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any

import jax
import numpy as np
import pytest

from dr3.errors import UserError
from dr3.methods import SARSA
from dr3.regularizers import DR3
from dr3.runs.member import Member, population
from dr3.training import train


def weights(runs, member, step=None):
    return jax.tree.leaves(runs.critics(step)[member])


def assert_same_member(one, member, other, number=0):
    for a, b in zip(weights(one, member), weights(other, number), strict=True):
        np.testing.assert_array_equal(a, b)
    for name, values in one.metrics.items():
        if name in other.metrics:
            np.testing.assert_array_equal(values[member], other.metrics[name][number])


def test_members_are_what_they_would_be_alone(run, tmp_path):
    choices = [(regularizer, seed) for regularizer in (None, DR3(0.1)) for seed in (0, 1)]
    together = run(out=tmp_path / "together", regularizer=[None, DR3(0.1)], seeds=2)
    assert [(member.regularizer, member.seed) for member in together.members] == choices
    for number, (regularizer, seed) in enumerate(choices):
        alone = run(out=tmp_path / f"alone{number}", regularizer=regularizer, seeds=[seed])
        assert_same_member(together, number, alone)
        assert together.returns[number] == alone.returns[0]
    different = {weights(together, number)[0].tobytes() for number in range(4)}
    assert len(different) == 4


def test_stacked_members_agree_with_members_in_threads(run, tmp_path, monkeypatch):
    options: Any = {"regularizer": [None, DR3(0.1)], "seeds": 2, "steps": 30}
    in_threads = run(out=tmp_path / "threads", **options)
    monkeypatch.setattr(import_module("dr3.training.train"), "execution_on", lambda backend: "stacked")
    stacked = run(out=tmp_path / "stacked", chunk=11, **options)
    assert (in_threads.config.execution, stacked.config.execution) == ("threads", "stacked")
    for number in range(4):
        for a, b in zip(weights(in_threads, number), weights(stacked, number), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(in_threads.steps, stacked.steps)


@pytest.mark.parametrize("metrics_every", [1, 10])
def test_a_member_that_diverges_is_frozen_and_the_others_go_on(run, tmp_path, logged, method, metrics_every, capsys):
    """A step of 1e30 leaves weights that are numbers and values that are not: the second update has no finite loss."""
    wild = dataclasses.replace(method, learning_rate=1e30)
    options: Any = {"steps": 20, "metrics_every": metrics_every, "evaluate_every": 10, "env": None}
    alone = run(out=tmp_path / "alone", **options)
    runs = train(logged, [wild, method], out=tmp_path / "both", chunk=4, **options)
    assert_same_member(runs, 1, alone)
    assert runs.status == {"step": 20, "finished": True, "diverged": {"0": 1}}
    assert "Member 0 diverged: after 1 updates its loss or weights are not finite" in capsys.readouterr().err
    assert all(np.isfinite(leaf).all() for leaf in weights(runs, 0))
    # What is kept is what its first update made: the largest weight is of the size of the step.
    assert max(np.abs(leaf).max() for leaf in weights(runs, 0)) == pytest.approx(1e30, rel=0.1)
    np.testing.assert_array_equal(np.isnan(runs.metrics["q/data_mean"][0]), runs.steps >= 1)
    assert not np.isnan(runs.metrics["q/data_mean"][1]).any()


@pytest.mark.parametrize("metrics_every", [1, 5])
def test_weights_that_are_no_numbers_stop_a_member(tmp_path, logged, method, metrics_every, capsys):
    """Without its ε, Adam divides 0 by 0 where a unit is dead. The loss before that step was finite.

    Its next update sees it, or a measurement that comes before.
    """
    reckless = dataclasses.replace(method, adam_epsilon=0.0)
    runs = train(logged, reckless, steps=10, metrics_every=metrics_every, evaluate_every=5, out=tmp_path / "run")
    assert runs.status["diverged"] == {"0": 1}
    assert capsys.readouterr().err.count("Member 0 diverged: after 1 updates") == 1
    np.testing.assert_array_equal(runs.steps, [0])


def test_a_diverged_member_stays_frozen_when_the_run_goes_on(run, tmp_path, logged, method):
    members = [dataclasses.replace(method, learning_rate=1e30), method]
    options: Any = {"metrics_every": 10, "evaluate_every": 10, "env": None, "out": tmp_path / "run", "progress": False}
    before = weights(train(logged, members, steps=10, **options), 0)
    runs = train(logged, members, steps=20, **options)
    assert runs.status["diverged"] == {"0": 1}
    for a, b in zip(weights(runs, 0), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_initial_weights_are_the_seeds_alone(run, tmp_path):
    runs = run(out=tmp_path / "run", regularizer=[None, DR3(0.1)], seeds=2, steps=20)
    for a, b, c in zip(*(weights(runs, number, step=0) for number in (0, 2, 1)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()


# --- Who is in it ---


def test_every_method_with_every_regularizer_and_every_seed(method):
    slow = dataclasses.replace(method, learning_rate=0.001)
    members = population([method, slow], [None, DR3(0.1)], [3, 5])
    assert members[:3] == [Member(method, None, 3), Member(method, None, 5), Member(method, DR3(0.1), 3)]
    assert len(members) == 8
    assert members[0].algorithm == "dqn"
    assert members[2].algorithm == "dqn+dr3:0.1"
    assert [Member.from_json(member.to_json()) for member in members] == members


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ((None, 0), "at least one method and one seed"),
        ((None, [1, 1]), "Two members of the population are the same"),
        (([DR3(0.1), DR3(0.1)], 1), "Two members of the population are the same"),
        (([], 1), "at least one regularizer"),
        ((None, [-1]), "A seed is a whole number from 0 to 4294967295, not -1"),
    ],
)
def test_populations_that_make_no_sense_are_refused(method, choices, says):
    with pytest.raises(UserError, match=says):
        population(method, *choices)


def test_members_share_one_method(method):
    with pytest.raises(UserError, match="share one method"):
        population([method, SARSA()], None, 1)


def test_coefficients_that_differ_in_the_eighth_digit_are_two_members(method):
    assert len(population(method, [DR3(0.12345678), DR3(0.12345679)], 1)) == 2
