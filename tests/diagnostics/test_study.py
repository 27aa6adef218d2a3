from __future__ import annotations

import dataclasses
import json
import shutil

import numpy as np
import pytest

from dr3.data import load
from dr3.diagnostics.checks import RETURNS
from dr3.diagnostics.measure import measure
from dr3.diagnostics.study import Kept, Outcomes, RuleTrial, alarms, comparable, outcomes, ranges, recalls, trials
from dr3.errors import UserError
from dr3.files import write_json


def trial(returns, scores, shown, *, task="world", member="run, dqn", untried=0, diverged=0):
    steps = np.arange(1, len(returns) + 1)
    holds = np.array(shown, bool)
    return RuleTrial(
        member=member,
        task=task,
        algorithm="dqn",
        steps=steps,
        returns=np.array(returns, float),
        scores={"q": np.array(scores, float)},
        unhealthy=holds,
        shown={"s": holds},
        untried=untried,
        diverged=diverged,
    )


def test_regret_and_correlation_by_hand():
    one = trial([1, 4, 3, 2], [1, 2, 3, 0], [0, 0, 0, 0])
    assert one.regret("q") == 1
    assert one.regret_of_any() == 1.5
    # Ranks 1 4 3 2 and 2 3 4 1: differences 1 1 1 1, so 1 - 6 * 4 / (4 * 15).
    assert one.correlation("q") == pytest.approx(0.6)
    assert np.isnan(trial([1, 1], [1, 2], [0, 0]).correlation("q"))


def test_a_rule_that_chooses_none_has_the_regret_of_any_checkpoint():
    assert trial([1, 4, 3, 2], [np.nan] * 4, [0, 0, 0, 0]).regret("q") == 1.5


def test_checkpoints_without_a_score_do_not_count_in_a_correlation():
    assert trial([1, 9, 2], [5, np.nan, 6], [0, 0, 0]).correlation("q") == pytest.approx(1)
    assert np.isnan(trial([1, 2], [np.nan] * 2, [0, 0]).correlation("q"))


def test_returns_are_counted_from_the_worst_that_was_seen_in_each_world():
    found = ranges(
        [trial([-10, -4], [0] * 2, [0] * 2), trial([-7, -2], [0] * 2, [0] * 2), trial([5], [0], [0], task="b")]
    )
    assert found == {"world": (-10, 8), "b": (5, 0)}


def test_recall_by_hand():
    """Means of three: 10, 8, 5.3. It fell at the fourth checkpoint, where the sign had shown; the others say less."""
    told = trial([10, 10, 10, 4, 2], [0] * 5, [0, 0, 1, 0, 0])
    late = trial([10, 10, 10, 4, 2], [0] * 5, [0, 0, 0, 0, 1])
    stayed = trial([10, 10, 10, 10, 9.5], [0] * 5, [1, 1, 1, 1, 1])
    poor = trial([0, 0, 0], [0] * 3, [1, 1, 1])
    assert recalls([told, late, stayed, poor])["s"] == Outcomes(1, 2)


def test_false_alarms_by_hand():
    """Of the two that learned something and never fell one showed the sign; the other two do not count."""
    fell = trial([10, 10, 10, 4, 2], [0] * 5, [1, 0, 0, 0, 0])
    stayed = trial([10, 10, 10, 10, 9.5], [0] * 5, [0, 0, 1, 0, 0])
    quiet = trial([2, 4, 6, 8, 10], [0] * 5, [0] * 5)
    poor = trial([0, 0, 0], [0] * 3, [1, 1, 1])
    assert alarms([fell, stayed, quiet, poor])["s"] == Outcomes(1, 2)


def kept(worth, best=6.0, logged=4.0, worst=1.0, mean=3.0):
    return Kept("run", "fqe", "surest", True, 1, worth, best, mean, worst, logged)


def test_what_was_kept_rightly():
    nothing = float("nan")
    assert kept(5.0).rightly
    assert not kept(3.0).rightly
    assert kept(nothing, best=4.0).rightly
    assert not kept(nothing).rightly
    assert kept(5.0, logged=nothing).rightly is None


def test_what_is_lost_by_what_was_kept():
    assert (kept(5.0).regret, kept(5.0).regret_of_any) == (pytest.approx(0.2), pytest.approx(0.6))
    assert np.isnan(kept(float("nan")).regret)
    assert np.isnan(kept(1.0, best=1.0).regret)


def test_outcomes_by_hand():
    fell = trial([10, 10, 2, 1], [0] * 4, [0, 1, 1, 1])  # worth 10 at the first sign, 1.5 later
    stayed = trial([10, 10, 10, 10], [0] * 4, [0, 0, 1, 0])
    worthless = trial([0, 0, 0, 0], [0] * 4, [1, 0, 0, 0])
    found = outcomes([fell, stayed, worthless])
    assert (found["any sign"].dropped, found["any sign"].counted) == (1, 2)
    assert (found["s"].dropped, found["s"].counted) == (1, 2)
    assert (found["no sign"].dropped, found["no sign"].counted) == (1, 3)  # step 1 of `fell`; steps 1 and 2 of `stayed`


def test_a_drop_is_counted_from_the_worst_return_where_returns_are_negative():
    fell = trial([-1, -1, -8, -9], [0] * 4, [0, 1, 1, 1])  # 8 above the worst at the first sign, 0.5 later
    stayed = trial([-1, -1, -1, -1], [0] * 4, [0, 1, 0, 0])
    found = outcomes([fell, stayed])
    assert (found["s"].dropped, found["s"].counted, found["s"].share) == (1, 2, 0.5)


def test_worlds_where_every_checkpoint_earned_the_same_are_left_out_by_name():
    kept, flat = trial([1, 2], [0] * 2, [0] * 2), trial([0, 0], [0] * 2, [0] * 2, task="flat")
    found, told = comparable([kept, flat])
    assert found == [kept]
    assert told == ["flat: left out; every checkpoint earned 0 there."]


def test_members_that_diverged_are_left_out_or_cut_by_name():
    cut = trial([1, 2], [0] * 2, [0] * 2, member="run, seed 0", untried=3, diverged=3)
    gone = trial([], [], [], member="run, seed 1", untried=5, diverged=5)
    found, told = comparable([cut, gone])
    assert found == [cut]
    assert told == [
        "run, seed 0: 2 of its 5 checkpoints count; the others have no return (it diverged).",
        "run, seed 1: left out; none of its 5 checkpoints has a return (it diverged before).",
    ]


@pytest.mark.parametrize(
    ("returns", "diverged", "says"),
    [
        ([1, 2], 0, "2 of its 5 checkpoints count; the others have no return (evaluations.jsonl holds none)."),
        (
            [1, 2],
            1,
            "2 of its 5 checkpoints count; the others have no return "
            "(it diverged, and of 2 before that evaluations.jsonl holds none).",
        ),
        ([], 0, "left out; none of its 3 checkpoints has a return (evaluations.jsonl holds none)."),
    ],
)
def test_a_member_is_said_to_have_diverged_only_if_it_did(returns, diverged, says):
    one = trial(returns, [0] * len(returns), [0] * len(returns), untried=3, diverged=diverged)
    assert comparable([one])[1] == [f"run, dqn: {says}"]


def test_trials_of_a_run(runs):
    found = trials(runs, ["last", "q"])
    assert [one.algorithm for one in found] == ["dqn", "dqn+dr3:0.1"]
    assert found[0].returns == pytest.approx(runs.evaluations["evaluation/return"][0, 1:])
    assert found[0].regret("last") == pytest.approx(found[0].returns.max() - found[0].returns[-1])


def test_a_rule_does_not_read_returns_that_the_doctor_knows(runs):
    def with_a_fall(*arguments, **options):
        measured = measure(*arguments, **options)
        low = np.broadcast_to([9.0, 9.0, 0.0], (len(runs), 3))  # of three checkpoints the last has fallen
        return dataclasses.replace(measured, columns=measured.columns | {RETURNS: low})

    found = trials(runs, ["healthy"], gradients=False, measuring=with_a_fall)
    blind = trials(runs, ["healthy"], gradients=False)
    assert found[0].shown["fall in returns"].tolist() == [False, False, True]
    assert found[0].scores["healthy"].tolist() == blind[0].scores["healthy"].tolist()


def keep_evaluations(runs, wanted):
    rows = [json.loads(line) for line in runs.folder.evaluations.read_text().splitlines()]
    shutil.rmtree(runs.folder.path / "state")  # it would notice
    runs.folder.evaluations.write_text("".join(json.dumps(row) + "\n" for row in rows if wanted(row)))


def test_a_member_that_diverged_is_a_trial_of_the_checkpoints_before(own_runs):
    keep_evaluations(own_runs, lambda row: row["member"] == 1 or row["step"] < 40)
    write_json(own_runs.folder.status, {"step": 60, "finished": True, "diverged": {"0": 30}})
    first, second = trials(own_runs, ["last"], gradients=False)
    assert (first.steps.tolist(), first.untried, first.diverged, first.regret("last")) == ([20], 2, 2, 0)
    assert (second.steps.tolist(), second.untried, second.diverged) == ([20, 40, 60], 0, 0)
    assert first.member == f"{own_runs.path}, dqn, regularizer none"


def test_a_run_whose_members_all_diverged_at_once_has_trials_without_checkpoints(own_runs):
    keep_evaluations(own_runs, lambda row: row["step"] == 0)
    assert [one.steps.tolist() for one in trials(own_runs, ["last"], gradients=False)] == [[], []]


def test_a_checkpoint_that_was_not_tried_is_no_part_of_a_trial(own_runs):
    keep_evaluations(own_runs, lambda row: row["step"] != 40)
    first = trials(own_runs, ["last"], gradients=False)[0]
    assert (first.steps.tolist(), first.untried, first.diverged) == ([20, 60], 1, 0)


def test_trials_take_data_that_moved(runs):
    runs.config = dataclasses.replace(runs.config, data=dataclasses.replace(runs.config.data, source=None))
    with pytest.raises(UserError, match="give the data"):
        trials(runs, ["q"], gradients=False)
    assert len(trials(runs, ["q"], load("grid16smoothobs:size=64", discount=0.9), gradients=False)) == 2


def test_held_out_data_count_for_the_rules(runs):
    held_out = load("grid16smoothobs:size=32:seed=9", discount=0.9)
    without = trials(runs, ["td-error"], gradients=False)[0].scores["td-error"]
    assert (trials(runs, ["td-error"], held_out=held_out, gradients=False)[0].scores["td-error"] != without).all()


def test_a_rule_that_cannot_be_applied_is_refused_before_anything_is_measured(runs):
    with pytest.raises(UserError, match="no checkpoint of step 7"):
        trials(runs, ["q", "step:7"], measuring=lambda *_, **__: pytest.fail("measured"))
