from __future__ import annotations

import json
import shutil
from importlib import resources

import numpy as np
import pytest

from dr3.diagnostics import Measurements, Thresholds
from dr3.diagnostics.checks import CHECKS, signs
from dr3.diagnostics.health import Judged, bootstraps, judge, judge_member
from dr3.errors import UserError
from dr3.instruments import updates_until
from dr3.methods import METHODS
from dr3.regularizers import DR3
from dr3.reports.checkup import Checkup
from dr3.runs import Runs

STEPS = np.array([0, 10, 20, 30, 40])
WELL = {
    "features/dot_product": [1.0, 5, 6, 6, 6],
    "features/co_adaptation": [0.2, 0.5, 0.5, 0.5, 0.5],
    "q/mean": [0.0, 4, 5, 5, 5],
    "q/outside": [0.0, 0, 0, 0, 0],
    "q/most": [0.0, 8, 9, 9, 9],
    "q/least": [0.0, 1, 1, 1, 1],
    "q/largest_return": [10.0] * 5,
    "q/lowest_return": [0.0] * 5,
    "rank/srank": [20.0, 12, 12, 11, 11],
    "features/dead": [0.1] * 5,
    "spectrum/last_layer/margin": [0.1] * 5,
}


def columns(**changed):
    named = {name.replace("__", "/"): values for name, values in changed.items()}
    return {name: np.array(values, float) for name, values in {**WELL, **named}.items()}


def verdicts(of, **options):
    return judge_member("dqn", STEPS, of, Thresholds(), **options).verdicts


def only(of, **options):
    """The one verdict, or the one note where there is no verdict."""
    found = judge_member("dqn", STEPS, of, Thresholds(), **options)
    (verdict,) = found.verdicts or found.notes
    return verdict


def test_a_healthy_member_has_no_verdict():
    assert verdicts(columns()) == []


def test_growing_dot_products_with_a_level_q_are_co_adaptation():
    found = only(columns(features__dot_product=[1, 5, 6, 60, 240]))
    assert found.name == "co-adaptation"
    assert found.since == 30  # 60 is ten times 6, but 12 times the 5 of step 10
    assert found.sentence == ("Feature dot products have grown 48x since step 10 while Q stayed level: co-adaptation.")


def test_dot_products_may_grow_with_q():
    assert verdicts(columns(features__dot_product=[1, 2, 6, 18, 54], q__mean=[0, 1, 3, 9, 27])) == []


def test_dot_products_that_grow_with_q_are_noted():
    found = judge_member(
        "dqn", STEPS, columns(features__dot_product=[1, 2, 6, 18, 54], q__mean=[0, 1, 3, 9, 27]), Thresholds()
    )
    assert found.healthy
    (note,) = found.notes
    assert (note.name, note.since) == ("growing dot products", 40)  # 54 is 27 times the 2 of step 10
    assert note.sentence == ("Feature dot products have grown 27x since step 10, to 54: what DR3 is meant to prevent.")


def test_checks_and_their_signs_have_the_same_names():
    of = {**columns(), "td/held_out_error": np.ones(5), "evaluation/return": np.ones(5)}
    assert [sign.name for sign in signs(STEPS, of, Thresholds())] == list(CHECKS)


def test_what_is_co_adaptation_is_not_noted_again():
    found = judge_member("dqn", STEPS, columns(features__dot_product=[1, 5, 6, 60, 240]), Thresholds())
    assert [note.name for note in found.notes] == ["co-adaptation"]


def test_what_was_not_looked_at_is_said():
    features_only = {name: values[None] for name, values in columns().items() if not name.startswith("q/")}
    whole = judge(Measurements(STEPS, features_only, 8), [Judged("mine")], Thresholds())
    missing = ["fall in returns", "divergence", "held-out error", "the spectrum over all parameters"]
    assert whole.not_looked_at == missing
    assert str(whole).splitlines()[-1] == f"Not looked at: {', '.join(missing)}."
    once = judge(
        Measurements(STEPS[:1], {n: v[:, :1] for n, v in features_only.items()}, 8),
        [Judged("mine")],
        Thresholds(),
    )
    assert str(once).splitlines()[-1] == "Signs of growth need several checkpoints; here is one."


def test_the_ratio_of_proposition_3_2_is_co_adaptation_by_itself():
    found = only(columns(features__co_adaptation=[0.2, 0.9, 1.1, 0.9, 1.0]))
    assert found.since == 40
    assert "Proposition 3.2" in found.sentence


def test_q_that_no_policy_could_earn_is_divergence():
    found = only(columns(q__outside=[0, 0, 0.02, 0.2, 0.9], q__most=[0, 8, 9, 30, 300]))
    assert (found.name, found.since) == ("divergence", 30)
    assert found.sentence == "Q reaches 300, above the largest possible return, 10: divergence."
    below = only(columns(q__outside=[0, 0, 0, 0, 1], q__least=[0, 1, 1, 1, -50]))
    assert "below the lowest possible return" in below.sentence
    broken = only(columns(q__outside=[0, 0, 0, 0, 1], q__mean=[0, 4, 5, 5, np.nan]))
    assert "no longer a finite number" in broken.sentence


def test_rank_collapse_is_measured_from_trained_features():
    assert verdicts(columns(rank__srank=[80, 12, 12, 11, 11])) == []  # random features have a high rank
    found = only(columns(rank__srank=[20, 12, 12, 3, 2]))
    assert (found.name, found.since) == ("rank collapse", 30)
    assert "from 12 to 2" in found.sentence


def test_dead_features_unstable_spectrum_and_held_out_error():
    assert only(columns(features__dead=[0, 0, 0.95, 0.95, 0.95])).since == 20
    assert only(columns(spectrum__all__margin=[0.1, 0.1, 0.1, -1e-5, -1e-2])).since == 40
    both = columns(spectrum__last_layer__margin=[-1] * 5, spectrum__all__margin=[0.1] * 5)
    assert verdicts(both) == []  # all parameters outvote the last layer
    found = only(columns(td__held_out_error=[1, 0.2, 0.1, 0.9, 1.5]))
    assert (found.since, found.name) == (40, "held-out error")


LONG = np.arange(0, 90, 10)


def returns(*values):
    of = {name: np.repeat(np.array(column, float)[-1], len(LONG)) for name, column in columns().items()}
    return {**of, "evaluation/return": np.array(values, float)}


def test_a_fall_in_returns_that_the_run_knows_is_the_first_sign():
    found = judge_member("dqn", LONG, returns(9, 100, 300, 500, 500, 500, 200, 9, 9), Thresholds())
    assert found.verdicts[0].name == "fall in returns"
    assert found.verdicts[0].sentence == "Returns have fallen from 500 to 72.67 (means of three evaluations)."
    risen = judge_member("dqn", LONG, returns(9, 9, 9, 100, 200, 500, 480, 500, 470), Thresholds())
    assert risen.healthy
    untried = judge_member("dqn", LONG, returns(*[np.nan] * 9), Thresholds())
    assert untried.healthy


def test_a_fall_after_few_tries_is_one_too():
    few = judge_member("dqn", LONG, returns(9, 300, 500, 9, *[np.nan] * 4, 9), Thresholds())
    assert few.verdicts[0].sentence == "Returns have fallen from 400 to 9 (means of two evaluations)."
    once = judge_member("dqn", LONG, returns(9, 500, *[np.nan] * 6, 9), Thresholds())
    assert once.verdicts[0].sentence == "Returns have fallen from 500 to 9 (single evaluations)."
    assert judge_member("dqn", LONG, returns(9, *[np.nan] * 7, 500), Thresholds()).healthy


def test_what_the_episodes_cannot_tell_is_no_fall():
    """From 498 to 484, on a plateau from 480 on: more than 30 % of its height, and less than two errors."""
    of = returns(480, 490, 499, 498, 497, 490, 485, 484, 483)
    assert not judge_member("dqn", LONG, of, Thresholds()).healthy
    noisy = {**of, "evaluation/standard_error": np.full(9, 12.5)}
    assert judge_member("dqn", LONG, noisy, Thresholds()).healthy


def test_what_was_measured_of_a_sign_stands_beside_it():
    record = json.loads(resources.files("dr3.diagnostics").joinpath("calibration.json").read_text("utf-8"))
    found = record["signs"]["divergence"]
    shown = only(columns(q__outside=[0, 0, 0, 0, 1])).shown
    assert f"Of {found['of']} critics with this sign in {record['runs']}, {found['fell']} then lost" in shown


def test_what_does_not_bootstrap_gets_no_advice_about_it():
    ill = columns(features__co_adaptation=[2.0] * 5, q__outside=[0, 0, 0, 0, 1])
    found = judge_member("supervised", STEPS, ill, Thresholds(), bootstraps=False)
    assert [one.name for one in (*found.verdicts, *found.notes)] == ["divergence"]
    assert "DR3" not in found.verdicts[0].advice
    learned = {"dqn": True, "sac": True, "td3-bc": True, "supervised": False, "bc": False, "discrete-bc": False}
    assert {name: bootstraps(METHODS[name]()) for name in learned} == learned


def test_the_forecast_of_an_unstable_eigenvalue():
    # Errors grow by 1 + 2 · 0.1 · 5 / 10 = 1.1 an update: e² times in 2 / ln 1.1.
    assert updates_until(-5.0, 0.1, 10, np.exp(2.0)) == pytest.approx(2 / np.log(1.1))
    assert updates_until(1.0, 0.1, 10, 100.0) == np.inf


def test_a_forecast_that_did_not_come_true_says_so():
    """μ = 12.8 over 128 rows at η = 0.5: errors grow by 1.1 an update, and have 10 times their size to go."""
    of = columns(spectrum__last_layer__margin=[0.1, -1, -1, -1, -1])
    of |= {"spectrum/last_layer/smallest_real_part": np.full(5, -12.8), "step_size": np.full(5, 0.5)}
    of["td/error_online"] = np.ones(5)
    said = only(of).sentence
    assert "Q leaves its bounds within about 24 updates." in said
    assert said.endswith("At step 10 that was 24, and 30 updates later it has not.")
    of["q/outside"] = np.array([0.0, 0, 0, 1, 1])
    note = judge_member("dqn", STEPS, of, Thresholds()).notes[0].sentence
    assert note.endswith("within about 24 updates.")


def test_a_sign_that_has_passed_is_no_verdict():
    found = judge_member("dqn", STEPS, columns(q__outside=[0, 0, 1, 0, 0]), Thresholds())
    assert found.verdicts == []
    assert found.unhealthy.tolist() == [False, False, True, False, False]


def test_the_last_layers_spectrum_alone_is_a_note():
    of = columns(spectrum__last_layer__margin=[0.1, 0.1, 0.1, -1e-5, -1e-2])
    found = judge_member("cql", STEPS, of, Thresholds())
    assert found.healthy
    assert not found.unhealthy.any()
    (note,) = found.notes
    assert (note.name, note.since, note.evidence["of"], note.advice) == ("unstable spectrum", 40, "last_layer", "")
    assert str(found).splitlines()[0] == (
        "  Healthy: no fall in returns and no impossible Q-values show, which is no promise of a good policy."
    )
    assert "Note, no sign of ill health by itself: An eigenvalue" in str(found)
    measured = Measurements(STEPS, {name: values[None] for name, values in of.items()}, 64)
    whole = judge(measured, [Judged("cql")], Thresholds())
    assert whole.healthy
    assert whole.to_json()["members"][0]["notes"][0]["evidence"]["margin"] == -1e-2
    ill = judge_member("cql", STEPS, {**of, "q/outside": np.array([0.0, 0, 0, 1, 1])}, Thresholds())
    assert [verdict.name for verdict in ill.verdicts] == ["divergence"]
    assert ill.unhealthy.tolist() == [False, False, False, True, True]


def test_advice_names_a_coefficient_and_the_last_checkpoint_without_a_sign():
    ill = columns(q__outside=[0, 0, 1, 1, 1])
    assert only(ill).advice == (
        "Try: DR3 (--regularizer dr3:0.03), with a few coefficients around that one; "
        "or use the checkpoint of step 10, the last without a sign."
    )
    assert "than 0.3, 0.1 or 0.9 first" in only(ill, regularizer=DR3(0.3)).advice
    assert "checkpoint" not in only(columns(q__outside=[1] * 5)).advice


def test_a_member_that_was_frozen_is_ill_whatever_else_is_measured():
    measured = Measurements(STEPS, {name: values[None] for name, values in columns().items()}, 64)
    found = judge(measured, [Judged("dqn", None, 37)], Thresholds())
    assert not found.healthy
    assert found.members[0].verdicts[0].since == 37


def test_a_frozen_member_is_not_sent_to_a_checkpoint_from_after_its_end():
    measured = Measurements(STEPS, {name: values[None] for name, values in columns().items()}, 64)
    frozen = judge(measured, [Judged("dqn", None, 30)], Thresholds()).members[0].verdicts[0]
    assert "use the checkpoint of step 20, the last without a sign" in frozen.advice


def test_a_run_without_checkpoints_is_not_called_healthy(own_runs):
    shutil.rmtree(own_runs.folder.checkpoints.folder)
    with pytest.raises(UserError, match="has no complete checkpoint yet"):
        own_runs.health()


def test_a_run_says_its_own_health(runs):
    found = runs.health()
    assert [member.label for member in found.members] == ["dqn, regularizer none", "dqn, regularizer dr3:0.1"]
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert record["step"] == 60
    assert record["healthy"] == found.healthy
    assert record["thresholds"]["growth"] == 10


def test_diagnose_report_and_watch_say_the_same_of_a_run_that_fell(own_runs):
    shutil.rmtree(own_runs.folder.state.folder)  # it would notice the other returns
    file, returns = own_runs.folder.evaluations, {0: 0.0, 20: 5.0, 40: 5.0, 60: 1.0}
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    changed = [row | {"evaluation/return": returns[row["step"]], "returns": [returns[row["step"]]]} for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in changed))
    runs = Runs(own_runs.path)
    whole = runs.health()
    for gradients in (False, True):  # as `dr3 watch` and as `dr3 report` measure
        checkup = Checkup(gradients=gradients)
        for step in runs.checkpoints:
            checkup.measure(runs, step)
        found = checkup.health(runs)
        assert found is not None
        for one, other in zip(found.members, whole.members, strict=True):
            assert [str(verdict) for verdict in one.verdicts] == [str(verdict) for verdict in other.verdicts]
            assert one.verdicts[0].sentence == "Returns have fallen from 5 to 1 (single evaluations)."
        assert ("the spectrum over all parameters" in found.not_looked_at) is not gradients


@pytest.mark.parametrize("word", ["Since step", "Try:"])
def test_printed_verdicts_say_since_when_and_what_to_try(word):
    measured = Measurements(STEPS, {k: v[None] for k, v in columns(q__outside=[0, 0, 0, 1, 1]).items()}, 64)
    assert word in str(judge(measured, [Judged("dqn")], Thresholds()))
