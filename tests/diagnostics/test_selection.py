from __future__ import annotations

import json

import jax
import numpy as np
import pytest

from dr3.data import load
from dr3.diagnostics import select
from dr3.diagnostics.selection import PROTOCOLS, choose, fqe_of_runs
from dr3.errors import UserError
from dr3.files import write_json


def broken(critic):
    return jax.tree.map(lambda leaf: leaf * np.nan, critic)


def test_last_and_step(runs):
    assert [choice.step for choice in select(runs, "last").choices] == [60, 60]
    assert [choice.step for choice in select(runs, "step:40").choices] == [40, 40]


@pytest.mark.parametrize("rule", ["td-error", "coadaptation", "healthy", "q", "srank"])
def test_every_rule_chooses_a_trained_checkpoint_and_is_recorded(runs, rule):
    found = select(runs, rule)
    assert {choice.step for choice in found.choices} <= {20, 40, 60}
    record = json.loads((runs.path / "selection.json").read_text())
    assert record["rule"] == rule
    assert record["protocol"] == PROTOCOLS[rule]
    assert record["simulator"] is False
    assert [one["step"] for one in record["members"]] == [choice.step for choice in found.choices]


def test_td_error_prefers_held_out_data(runs):
    held_out = load("grid16smoothobs:size=32:seed=9", discount=0.9)
    with_it, without = select(runs, "td-error", held_out=held_out), select(runs, "td-error")
    assert (with_it.choices[0].scores != without.choices[0].scores).all()


def test_the_latest_of_equals_and_never_a_score_that_is_not_finite():
    assert choose("q", np.array([1.0, 3, 3, 2])) == 2
    assert choose("q", np.array([-1.0, np.nan, -2, np.inf])) == 0
    assert choose("q", np.array([np.nan, np.inf])) is None


def test_rules_that_name_checkpoints_take_no_other():
    assert choose("healthy", np.array([10.0, 20, -30])) == 1
    assert choose("healthy", np.array([-10.0, -20, -30])) is None
    assert choose("coadaptation", np.array([-10.0, -20])) is None
    assert choose("step:20", np.array([0.0, np.nan, 0])) is None


@pytest.mark.parametrize("rule", ["td-error", "coadaptation", "q", "srank"])
def test_a_critic_that_is_not_finite_is_never_chosen(own_runs, rule):
    for step in (20, 40, 60):
        first, second = own_runs.critics(step)
        own_runs.folder.checkpoints.save(step, [broken(first), second if step == 20 else broken(second)])
    found = select(own_runs, rule)
    assert [choice.step for choice in found.choices] == [None, 20]
    assert json.loads((own_runs.path / "selection.json").read_text())["members"][0]["step"] is None


def test_no_checkpoint_is_healthy_where_none_is_finite(own_runs):
    for step in (20, 40, 60):
        own_runs.folder.checkpoints.save(step, broken(own_runs.critics(step)))
    assert [choice.step for choice in select(own_runs, "healthy").choices] == [None, None]


def test_fitted_evaluation_has_no_value_for_a_critic_that_is_not_finite(own_runs):
    first, second = own_runs.critics(60)
    own_runs.folder.checkpoints.save(60, [first, broken(second)])
    values = fqe_of_runs(own_runs, [40, 60], None)
    assert np.isfinite(values).tolist() == [[True, True], [True, False]]


def test_what_was_saved_of_a_member_after_it_diverged_is_never_chosen(own_runs):
    write_json(own_runs.folder.status, {"step": 60, "finished": True, "diverged": {"0": 40}})
    assert [choice.step for choice in select(own_runs, "last").choices] == [20, 60]
    assert [choice.step for choice in select(own_runs, "step:60").choices] == [None, 60]


def test_unknown_rules_and_steps(runs):
    with pytest.raises(UserError, match="There is no rule 'best'"):
        select(runs, "best")
    with pytest.raises(UserError, match="no checkpoint of step 7"):
        select(runs, "step:7")
    with pytest.raises(UserError, match="There is no rule"):
        select(runs, "step:N")
