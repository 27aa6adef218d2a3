"""The rules by which a claim shows, on numbers made by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from dr3.paper.experiments import Answer, Arm, Evidence
from dr3.paper.experiments.beside import ByWorld
from dr3.paper.experiments.checks import (
    DOT,
    MEAN_Q,
    SRANK,
    Ends,
    Falls,
    Grows,
    Keeps,
    NoCollapse,
    Robust,
    Settles,
    WorstEndsLarger,
)
from dr3.paper.experiments.evidence import SCORE
from dr3.paper.experiments.pictures import Intervals, Probability
from dr3.paper.experiments.result import judge
from dr3.paper.experiments.score_checks import Declines, Gain, Improves, NotWorse
from dr3.paper.experiments.scoring import Percent
from dr3.runs.outcomes import RETURN

STEPS = np.array([0, 5, 10])


class Given(Evidence):
    """Evidence whose curves are written down: {(metric, label, world): (members, 3)}."""

    def __init__(self, curves, group=""):
        pairs = dict.fromkeys((label, world) for _, label, world in curves)
        super().__init__([Arm(label, world, (), Percent(), group) for label, world in pairs], runs=Path())
        self.curves = curves

    def curve(self, metric, label, place):
        return STEPS, np.array(self.curves[metric, label, place.world], float)


def ends(**worlds):
    """Dot products of A and B by world, as medians at the end."""
    return Given(
        {
            (DOT, label, world): [[0, 0, value - 1], [0, 0, value], [0, 0, value + 100]]
            for world, pair in worlds.items()
            for label, value in zip("AB", pair, strict=True)
        }
    )


def test_a_population_that_diverged_stays_where_it_was(monkeypatch):
    def run(seed, *values):
        return SimpleNamespace(
            members=[SimpleNamespace(seed=seed)],
            config={"steps": 10, "metrics_every": 4},
            steps=np.array([0, 4, 8, 10])[: len(values)],
            metrics={DOT: np.array([values], float)},
        )

    evidence = Evidence([Arm("A", "w", (), Percent())], Path())
    found = [run(1, 1, 2, 3, 4), run(0, 5, 6)]
    monkeypatch.setattr(evidence, "runs", lambda label, place: found)
    (place,) = evidence.places("A")
    steps, values = evidence.curve(DOT, "A", place)
    np.testing.assert_array_equal(steps, [0, 4, 8, 10])
    np.testing.assert_array_equal(values, [[5, 6, 6, 6], [1, 2, 3, 4]])
    found[:] = found[1:]  # none is left: curves of other worlds are still as long
    np.testing.assert_array_equal(evidence.curve(DOT, "A", place)[1], [[5, 6, 6, 6]])


def test_ends_needs_more_than_half_of_the_worlds():
    found = Ends(DOT, "A", "smaller", than="B")(ends(one=(1, 2), two=(3, 4), three=(6, 5)))
    assert found.holds
    assert "on 2 of 3 worlds" in found.sentence
    assert found.numbers["three"] == [6, 5]
    assert not Ends(DOT, "A", "larger", than="B")(ends(one=(1, 2), two=(3, 4), three=(6, 5))).holds
    assert not Ends(DOT, "A", "smaller", than="B")(ends(one=(1, 2), two=(6, 5))).holds


def test_the_worst_of_several_counts():
    curves = {(DOT, label, "w"): [[0, 0, value]] for label, value in (("N = 10", 5), ("N = 50", 1), ("N = 500", 7))}
    assert WorstEndsLarger(DOT, ("N = 50", "N = 500"), than="N = 10")(Given(curves)).holds
    assert not WorstEndsLarger(DOT, ("N = 50",), than="N = 10")(Given(curves)).holds


@pytest.mark.parametrize(("curve", "half", "start"), [([3, 1, 2], True, False), ([1, 3, 2], False, True)])
def test_growth_is_counted_from_half_way_or_from_the_start(curve, half, start):
    evidence = Given({(DOT, "A", "w"): [curve]})
    assert Grows(DOT, "A")(evidence).holds == half
    assert Grows(DOT, "A", since=0.0)(evidence).holds == start


@pytest.mark.parametrize(("curve", "settled"), [([0, 8, 10], True), ([0, 7, 10], False), ([0, -8, -10], True)])
def test_a_metric_settles_when_little_of_its_size_is_new(curve, settled):
    # The median over members counts, not the one that runs away.
    members = [curve, curve, [0, 1, 1e6]]
    assert Settles(MEAN_Q, "A")(Given({(MEAN_Q, "A", "w"): members})).holds == settled


@pytest.mark.parametrize(
    ("curve", "collapsed"), [([80, 100, 50], False), ([80, 100, 49], True), ([100, 40, 60], False)]
)
def test_a_collapse_is_a_loss_of_more_than_half(curve, collapsed):
    found = NoCollapse(SRANK, "A")(Given({(SRANK, "A", "w"): [curve]}))
    assert found.holds != collapsed
    assert found.numbers["w"] == [curve[-1], 100]


def test_falling_and_keeping_are_about_the_start():
    evidence = Given({(RETURN, "A", "w"): [[10, 2, 8]], (RETURN, "B", "w"): [[20, 19, 10]]})
    assert Falls("A")(evidence).holds
    kept = Keeps("A", than="B")(evidence)
    assert kept.holds
    assert kept.numbers["w"] == [0.8, 0.5]


def test_robust_looks_at_the_last_layer(monkeypatch):
    shares = {"A": [[[0.1, 0.1], [0.5, np.nan]]], "B": [[[0.9, 0.9], [0.4, 0.5]]]}

    class Test:
        def __init__(self, label):
            self.returns = np.array(shares[label])

    evidence = ends(w=(0, 0))
    monkeypatch.setattr(evidence, "layers", lambda label, place: Test(label))
    found = Robust("A", than="B")(evidence)
    assert found.holds
    np.testing.assert_allclose(found.numbers["w"], [0.5, 0.45])


def scores(a, b, group="1%"):
    """Three seeds in two worlds; every checkpoint after the first has the given score."""
    return Given(
        {
            (SCORE, label, world): [[0, value + shift, value + shift] for shift in (0, 1, 2)]
            for label, value in (("A", a), ("B", b))
            for world in ("one", "two")
        },
        group,
    )


def test_a_gain_needs_its_interval_above_0():
    found = Gain("A", "B", "average")(scores(30, 20))
    assert found.holds
    # Paired: the seeds' spread cancels, and the difference is 10 in every draw.
    np.testing.assert_allclose(found.numbers["1%"], [10, 10, 10])
    assert not Gain("A", "B")(scores(20, 20)).holds
    assert not Gain("A", "B", "final", "median")(scores(19, 20)).holds
    assert NotWorse("A", than="B")(scores(20, 20)).holds
    assert not NotWorse("A", than="B")(scores(19, 20)).holds


def test_the_share_of_training_is_the_one_that_was_measured():
    evidence = scores(30, 20)  # policies were tried at 0, 5 and 10
    assert evidence.reached(0.3) == 0.5
    assert evidence.reached("final") == "final"
    found = Gain("A", "B", 0.3)(evidence)
    assert found.rule.startswith("The score after 50% of training of A")
    assert found.sentence.startswith("IQM of the score after 50% of training: ")


def test_the_untrained_policy_is_not_averaged():
    evidence = scores(30, 20)
    places = evidence.places("A")
    np.testing.assert_allclose(evidence.scores("A", places, "average"), [[30, 30], [31, 31], [32, 32]])
    np.testing.assert_allclose(evidence.scores("A", places, 0.0)[:, 0], 0)
    assert evidence.aggregate("A", "1%", "final").estimate == pytest.approx(31)


def test_returns_of_other_games_do_not_stand_beside_the_papers():
    curves = {
        (RETURN, label, world): [[0, 1, 2], [0, 3, 4]]
        for label in ("CQL", "CQL + DR3")
        for world in ("Pong", "MinAtar Breakout")
    }
    rows = {row.what: (row.paper, row.ours) for row in ByWorld("atari-cql-1")(Given(curves))}
    assert rows["Pong: CQL, final return"] == ("16.7 ± 1.7", "3.0 ± 1.4")
    assert rows["MinAtar Breakout: CQL, final return"] == (None, "3.0 ± 1.4")
    *_, (absent, (where, _)) = rows.items()
    assert "Breakout" in absent
    assert "Pong" not in absent
    assert where == "dr3 paper show atari-cql-1"
    assert len(rows) == 2 * 4 + 1


def test_declining_is_from_the_peak():
    falls = Given({(SCORE, "A", "w"): [[0, 50, 30], [0, 52, 31]]})
    found = Declines("A")(falls)
    assert found.holds
    assert found.numbers[""][0] == pytest.approx(20.5)
    assert not Declines("A")(Given({(SCORE, "A", "w"): [[0, 30, 50], [0, 31, 52]]})).holds


def test_improving_is_significant_and_meaningful():
    assert Improves("A", "B")(scores(30, 20)).holds
    assert not Improves("A", "B")(scores(20, 20)).holds


def test_the_picture_of_improvement_is_of_the_same_probability(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr("dr3.reports.figures.improvement_plot", lambda found: drawn.extend(found) or Figure())
    Probability("A", "B", "final")(scores(20, 20), tmp_path / "figure.png", "here")
    found = Improves("A", "B")(scores(20, 20))
    assert drawn[0].improvement.probability.estimate == found.numbers["probability"][0] == 0.5
    assert (tmp_path / "figure.png").exists()


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ("final", "IQM of the final normalised\nscore"),
        ("average", "IQM of the normalised score\naveraged over training"),
    ],
)
def test_the_picture_of_intervals_says_which_score(monkeypatch, tmp_path, measure, words):
    saved = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: saved.append(self))
    Intervals(measure)(scores(20, 30), tmp_path / "figure.png", "here, with a caption of several words")
    assert [axis.get_xlabel() for axis in saved[0].axes] == [words]
    caption = saved[0].get_supxlabel()
    assert (
        caption.replace("\n", " ") == "here, with a caption of several words; bars: 95 % stratified bootstrap intervals"
    )
    assert caption.count("\n") == 1  # else it would be cut at both sides


def test_reasons_name_what_failed_in_a_few_words():
    found = Ends(DOT, "A", "smaller", than="B")(ends(one=(1, 2), two=(6, 5)))
    assert found.reason == "The feature dot product of A ends smaller than that of B on 1 of 2 worlds."
    settled = Settles(MEAN_Q, "A")(Given({(MEAN_Q, "A", "w"): [[0, 5, 10]]}))
    assert settled.reason == "The mean Q of A has settled on 0 of 1 worlds."
    lost = Gain("A", "B", "final")(scores(20, 30))
    assert lost.reason == "No clear gain of A over B, final score: -10.0 (-10.0, -10.0) on 1%."
    assert NotWorse("A", "B")(scores(20, 30, group="")).reason == (
        "A loss of A against B, score averaged over training: -10.0 (-10.0, -10.0)."
    )
    rising = Declines("A")(Given({(SCORE, "A", "w"): [[0, 30, 50], [0, 30, 50]]}))
    assert rising.reason == "No clear drop of A from its peak: 0.0 (0.0, 0.0)."
    even = Improves("A", "B")(scores(20, 20))
    assert even.reason.startswith("Probability that a run of A beats one of B: 0.50 (")


def test_a_verdict_names_the_check_that_fails():
    good, bad = Answer("Rule one.", True, "Yes.", {}), Answer("Rule two.", False, "It is 3.", {})
    assert judge([good, good], "laptop", trained=True) == ("shows", "")
    assert judge([good, bad], "laptop", trained=True) == ("does not show", "Not fulfilled: Rule two.")
    brief = dataclasses.replace(bad, reason="3 is too few.")
    assert judge([brief, good, brief], "laptop", trained=True)[1] == "3 is too few. 3 is too few."
    assert judge([good], "smoke", trained=True)[0] == "cannot be compared"
    assert judge([good], "smoke", trained=False)[0] == "shows"
