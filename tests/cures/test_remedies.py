"""From the name of a remedy to what is trained."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dr3.cores import available_cores
from dr3.cures import REMEDIES, CurePlan, PlanRecord, default_treatments, going_on, steps_within, treatment_for
from dr3.cures.remedies import about
from dr3.errors import UserError
from dr3.methods import CQL, DQN, REM, SAC, ContinuousCQL
from dr3.regularizers import BEER, DR3, Sum

BASE = DQN(learning_rate=3e-4, target_period=100)


def test_one_remedy_changes_one_thing(logged):
    def method(word):
        return treatment_for(word, BASE, logged).method

    assert treatment_for("none", BASE, logged).flags(BASE) == []
    assert method("layer-norm") == dataclasses.replace(BASE, layer_norm=True)
    assert method("small-steps") == dataclasses.replace(BASE, learning_rate=3e-4 / 3)
    assert method("slow-target") == dataclasses.replace(BASE, target_period=400)
    assert treatment_for("adamw", BASE, logged).flags(BASE) == ["--optimizer", "adamw", "--weight-decay", "0.01"]
    assert treatment_for("dr3", BASE, logged).regularizer == DR3(0.03)
    assert treatment_for("dr3:0.2", BASE, logged).regularizer == DR3(0.2)
    assert treatment_for("early-stop", BASE, logged).rule == "healthy"


def test_several_together(logged):
    found = treatment_for("dr3:0.1+layer-norm+beer", BASE, logged)
    assert found.method == dataclasses.replace(BASE, layer_norm=True)
    assert found.regularizer == Sum(terms=(DR3(0.1), BEER(0.001)))
    assert found.flags(BASE) == ["--layer-norm", "--regularizer", "dr3:0.1+beer:0.001"]


def test_the_support_of_a_histogram_is_what_rewards_allow(logged):
    data = dataclasses.replace(logged, rewards=np.linspace(-1, 2, len(logged), dtype=np.float32))
    found = treatment_for("hl-gauss", DQN(discount=0.5), data)
    assert found.flags(DQN(discount=0.5)) == ["--hl-gauss", "101", "--support", "-2", "4"]
    # 1 / (1 - 0.99) is 99.99999999999991: nobody should have to write that.
    assert treatment_for("hl-gauss", DQN(discount=0.99), data).flags(DQN())[3:] == ["-100", "200"]
    # In the units that it learns in: 10 (r + 1) is between 0 and 30.
    scaled = DQN(discount=0.5, reward_scale=10.0, reward_shift=1.0)
    assert treatment_for("hl-gauss", scaled, data).flags(scaled)[3:] == ["0", "60"]
    with pytest.raises(UserError, match="--support 0 60"):
        dataclasses.replace(scaled, hl_gauss=101).prepare(data)


def test_flags_are_the_very_numbers(logged):
    # 1e-3 / 3 has no six digits that are the same number.
    flags = treatment_for("small-steps", DQN(learning_rate=1e-3), logged).flags(DQN(learning_rate=1e-3))
    assert float(flags[1]) == 1e-3 / 3


@pytest.mark.parametrize("word", ["dr4", "none+dr3", "dr3+early-stop", "small-steps+small-steps", "sum", "dr3+dr3:0.1"])
def test_what_is_no_remedy(word, logged):
    with pytest.raises(UserError):
        treatment_for(word, BASE, logged)


def test_every_remedy_has_words_and_applies_to_cql(logged):
    for word in REMEDIES:
        assert about(word)
        assert treatment_for(word, CQL(), logged).name == word


def test_what_does_not_apply_is_left_out_or_said(logged, logged_continuous):
    names = [one.name for one in default_treatments(REM(), logged)]
    assert "hl-gauss" not in names
    assert "layer-norm" in names
    with pytest.raises(UserError, match="hl-gauss does not apply to sac"):
        treatment_for("hl-gauss", SAC(), logged_continuous)
    slow = treatment_for("slow-target", ContinuousCQL(), logged_continuous).method
    assert slow == ContinuousCQL(target_rate=0.005 / 4)
    assert treatment_for("dr3", ContinuousCQL(), logged_continuous).regularizer == DR3(0.01)


def test_a_budget_gives_steps_by_hand(logged):
    some = [treatment_for(word, BASE, logged) for word in ("none", "slow-target", "dr3", "early-stop")]
    # Two programs for three trainings of 2 members, and four rows: 10 + 4 · 5 seconds on one core, 2 · 9 on all.
    left = (10 * 60 - 30) * available_cores() - 18
    steps = left / (1.5 * 3 * 2 * 0.01)
    found = steps_within(10, some, 2, 0.01)
    assert found <= steps < 1.1 * found + 1
    assert len(str(found).rstrip("0")) <= 2
    with pytest.raises(UserError, match="--minutes"):
        steps_within(0.1, some, 2, 0.01)


def test_a_plan_holds_none_and_begins_with_one_of_every_program(logged):
    some = tuple(treatment_for(word, BASE, logged) for word in ("none", "dr3", "slow-target", "early-stop"))
    plan = CurePlan("logged", some, 2, 100)
    assert [one.name for one in plan.trained] == ["none", "dr3", "slow-target"]
    assert plan.task(some[3]) == plan.task(some[0])
    with pytest.raises(UserError, match="none"):
        CurePlan("logged", some[1:], 2, 100)


def test_a_longer_plan_lengthens_the_runs_of_the_first(logged, tmp_path):
    some = tuple(treatment_for(word, BASE, logged) for word in ("none", "dr3"))
    first = CurePlan("logged", some, 2, 100)
    assert going_on(first, PlanRecord.read(tmp_path), tmp_path, minutes=2) == first
    PlanRecord.of(first, 2).write(tmp_path)

    def asked(steps, minutes=None, **other):
        plan = dataclasses.replace(first, steps=steps, **other)
        return going_on(plan, PlanRecord.read(tmp_path), tmp_path, minutes=minutes)

    longer = asked(5_000)
    assert longer.steps == 5_000
    assert [task.name for task in longer.tasks] == [task.name for task in first.tasks]
    assert asked(60, minutes=1).steps == 100
    PlanRecord.of(longer, None).write(tmp_path)
    assert asked(9_000).tasks[0].name == first.tasks[0].name
    with pytest.raises(UserError, match="not cut to 100"):
        asked(100)
    with pytest.raises(UserError, match="another env"):
        asked(9_000, env=None)
