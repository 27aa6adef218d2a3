from __future__ import annotations

import json

import numpy as np
import pytest

from dr3.collect import load
from dr3.diagnostics import select
from dr3.diagnostics.fqe import FQE
from dr3.diagnostics.selection import PROTOCOLS, best
from dr3.diagnostics.study import Trial, outcomes, trials
from dr3.envs import gridworld, policy_values
from dr3.errors import UserError


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


def test_the_latest_of_equals_and_never_a_nan():
    assert best(np.array([1.0, 3, 3, 2])) == 2
    assert best(np.array([1.0, np.nan, 0])) == 0


def test_unknown_rules_and_steps(runs):
    with pytest.raises(UserError, match="There is no rule 'best'"):
        select(runs, "best")
    with pytest.raises(UserError, match="no checkpoint of step 7"):
        select(runs, "step:7")
    with pytest.raises(UserError, match="There is no rule"):
        select(runs, "step:N")


def test_fqe_finds_the_exact_value_of_a_policy():
    """Everything logged, one deterministic policy: the fitted value must be near the world's own."""
    world = gridworld("grid16smoothobs")
    data = load("grid16smoothobs:size=2000:behavior=random", discount=0.8)
    chosen = np.eye(world.transitions.shape[1])[np.ones(len(world.observations), int)]
    exact = policy_values(world.transitions, world.rewards, chosen, 0.8)[world.start, 1]
    fqe = FQE(updates=2500, hidden=(64,), learning_rate=5e-3)
    fitted = fqe(lambda s: np.ones(len(s), np.int32), data, 0.8)
    assert fitted == pytest.approx(exact, abs=0.15)
    assert exact > 0.5  # the test can fail


def trial(returns, scores, shown):
    steps = np.arange(1, len(returns) + 1)
    holds = np.array(shown, bool)
    return Trial(
        "world", "dqn", steps, np.array(returns, float), {"rule": np.array(scores, float)}, holds, {"s": holds}
    )


def test_regret_and_correlation_by_hand():
    one = trial([1, 4, 3, 2], [1, 2, 3, 0], [0, 0, 0, 0])
    assert one.regret("rule") == 1
    assert one.regret_of_any() == 1.5
    # Ranks 1 4 3 2 and 2 3 4 1: differences 1 1 1 1, so 1 - 6 * 4 / (4 * 15).
    assert one.correlation("rule") == pytest.approx(0.6)
    assert np.isnan(trial([1, 1], [1, 2], [0, 0]).correlation("rule"))


def test_outcomes_by_hand():
    fell = trial([10, 10, 2, 1], [0] * 4, [0, 1, 1, 1])  # worth 10 at the first sign, 1.5 later
    stayed = trial([10, 10, 10, 10], [0] * 4, [0, 0, 1, 0])
    worthless = trial([0, 0, 0, 0], [0] * 4, [1, 0, 0, 0])
    found = outcomes([fell, stayed, worthless])
    assert (found["any sign"].dropped, found["any sign"].counted) == (1, 2)
    assert (found["s"].dropped, found["s"].counted) == (1, 2)
    assert (found["no sign"].dropped, found["no sign"].counted) == (1, 3)  # step 1 of `fell`; steps 1 and 2 of `stayed`


def test_trials_of_a_run(runs):
    found = trials(runs, ["last", "q"])
    assert [one.algorithm for one in found] == ["dqn", "dqn+dr3:0.1"]
    assert found[0].returns == pytest.approx(runs.evaluations["evaluation/return"][0, 1:])
    assert found[0].regret("last") == pytest.approx(found[0].returns.max() - found[0].returns[-1])
