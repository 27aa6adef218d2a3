"""Members and checkpoints in one ranking, and what can be told from it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dr3.data import load
from dr3.data.subsets import split_episodes
from dr3.diagnostics import rank
from dr3.diagnostics.measure import held_out_data, judged_by, training_data
from dr3.diagnostics.ranking import Scores, _told, tournament
from dr3.errors import UserError
from dr3.methods import DQN
from dr3.ope import FQE
from dr3.training import train


def candidates(*steps):
    return [SimpleNamespace(name=f"run@{step}", step=step, member=0) for step in steps]


def scores(found, noise, gain=None):
    random = np.random.default_rng(0)
    found = np.array(found)
    spread = found + noise * random.standard_normal((200, len(found)))
    gains = None if gain is None else np.array(gain) + noise * random.standard_normal((200, len(found)))
    return Scores(found, spread, gains, {}, None, 100)


def told(found, noise, gain=None, steps=(10, 20, 30), way="surest"):
    ones: Any = candidates(*steps)
    return _told(ones, scores(found, noise, gain), "fqe", "log", way)


def test_the_best_is_chosen_where_it_can_be_told():
    ranking = told([1.0, 5.0, 2.0], 0.1, gain=[1.0, 5.0, 2.0])
    assert ranking.chosen is not None
    assert (ranking.chosen.step, ranking.abstained) == (20, False)
    assert [one.step for one in ranking.order] == [20, 30, 10]


# Four candidates against a logged policy of 2: the second comes out best; the first has a wide interval, the third the
# narrowest, the fourth cannot be told from the logged policy.
FOUND, SPREAD = np.array([4.1, 5.0, 4.9, 4.6]), np.array([0.6, 0.8, 0.2, 3.0])


@pytest.mark.parametrize(
    ("way", "step", "why"),
    [
        ("surest", 30, "the surest of them (worth at least 2.51 more than the logged policy)"),
        ("one-error", 30, "the earliest of them within one standard error of the largest score"),
        ("earliest", 10, "the earliest of them"),
        ("largest", 40, "the one with the largest score"),
    ],
)
def test_which_is_kept_of_those_that_cannot_be_told_apart(way, step, why):
    ones: Any = candidates(10, 40, 30, 20)
    noise = np.random.default_rng(0).standard_normal((2000, 4))
    spread = FOUND + SPREAD * (noise - noise.mean(axis=0)) / noise.std(axis=0, ddof=1)
    ranking = _told(ones, Scores(FOUND, spread, spread - 2.0, {}, None, 10_000), "fqe", "log", way)
    assert ranking.chosen is not None
    assert (ranking.chosen.step, ranking.abstained) == (step, True)
    assert [one.step for one in ranking.tied] == [40, 30, 20, 10]
    begins = f"These 4 cannot be told apart, 3 of them can be told from the logged policy; keep run@{step}, {why}"
    assert ranking.sentence.startswith(begins)


def test_the_surest_is_the_highest_lower_limit_by_hand():
    """Lower limits of the gains: 2.1 - 1.96 * 0.6 = 0.92, 3 - 1.96 * 0.8 = 1.43, 2.9 - 1.96 * 0.2 = 2.51."""
    noise = np.random.default_rng(0).standard_normal((2000, 4))
    spread = FOUND + SPREAD * (noise - noise.mean(axis=0)) / noise.std(axis=0, ddof=1)
    one = Scores(FOUND, spread, spread - 2.0, {}, None, 10_000)
    assert [one.least(k) for k in range(3)] == pytest.approx([0.92, 1.43, 2.51], abs=0.01)
    assert [one.beats_logged(k) for k in range(4)] == [True, True, True, False]


def test_without_a_logged_value_the_surest_has_the_highest_lower_limit_of_its_score():
    ranking = told([4.9, 1.0, 5.0], 0.5)
    assert ranking.chosen is not None
    assert (ranking.chosen.step, ranking.gain) == (30, None)
    assert "a score of at least" in ranking.sentence


def test_nothing_is_chosen_where_none_can_be_told_from_the_logged_policy():
    ranking = told([1.0, 5.0, 2.0], 0.5, gain=[-4.0, 0.2, -3.0])
    assert ranking.chosen is None
    assert "None can be told from the logged policy" in ranking.sentence


def test_what_is_kept_beats_the_logged_policy_itself():
    """The first has too wide an interval to be told from the best, and none to be told from the logged policy."""
    noise = np.random.default_rng(0).standard_normal((200, 3)) * [4.0, 0.1, 0.1]
    found, logged = np.array([3.0, 5.0, 4.99]), 2.0
    ones: Any = candidates(10, 20, 30)
    ranking = _told(ones, Scores(found, found + noise, found + noise - logged, {}, None, 100), "fqe", "log")
    assert [one.step for one in ranking.tied] == [20, 30, 10]
    assert ranking.chosen is not None
    assert ranking.chosen.step == 20
    assert "2 of them can be told from the logged policy; keep run@20" in ranking.sentence


def test_what_has_no_score_is_last():
    ranking = told([np.nan, 5.0, 2.0], 0.1)
    assert [one.step for one in ranking.order] == [20, 30, 10]
    assert told([np.nan] * 3, 0.1).chosen is None


def test_a_tournament_is_won_by_the_critic_that_is_its_own_target():
    random = np.random.default_rng(0)
    truth = random.standard_normal(400)
    wrong = truth + np.sin(3 * truth)
    noise = 0.3 * random.standard_normal(400)
    # The right critic's targets scatter around it; the wrong one's scatter around something else.
    errors = tournament(np.stack([truth, wrong], 1), np.stack([truth + noise, truth + noise], 1), np.ones((1, 400)))
    assert errors[0, 0] < 0.5 * errors[0, 1]


def test_a_tournament_by_hand():
    """With one row in each cell the projection is the target itself: the error is the TD error."""
    values = np.arange(8.0)[:, None]
    assert tournament(values, values + 2.0, np.ones((1, 8)))[0, 0] == pytest.approx(2.0)


@pytest.fixture(scope="module")
def held_out_run(tmp_path_factory):
    data = load("grid16smoothobs:size=500", discount=0.9)
    method = DQN(hidden=(4,), batch_size=8, discount=0.9)
    out = tmp_path_factory.mktemp("ranking") / "run"
    return train(data, method, steps=4, seeds=2, held_out="20%", evaluate_every=2, out=out, env=None, progress=False)


def test_held_out_episodes_are_remembered(held_out_run):
    whole = load("grid16smoothobs:size=500", discount=0.9)
    kept, aside = training_data(held_out_run), held_out_data(held_out_run)
    assert aside is not None
    assert (len(kept), len(aside)) == (400, 100)
    assert not set(kept.episodes) & set(aside.episodes)
    assert training_data(held_out_run, kept) is kept
    assert judged_by(held_out_run).fingerprint() == aside.fingerprint()
    assert judged_by(held_out_run, whole).fingerprint() == aside.fingerprint()
    with pytest.raises(UserError, match="both parts need at least one episode"):
        split_episodes(whole, "1%")


@pytest.mark.parametrize("rule", ["fqe", "td-error", "tournament"])
def test_every_ranking_is_written_into_the_run(held_out_run, rule):
    ranking = rank([held_out_run], rule, fqe=FQE(bootstraps=5))
    assert len(ranking.order) == 4
    record = json.loads((held_out_run.path / "selection.json").read_text())
    assert record["rule"] == rule
    assert record["judged_by"].endswith("held-out-20%")
    assert record["member"] == (None if ranking.chosen is None else ranking.chosen.member)


def test_runs_find_their_data_from_any_folder(tmp_path, monkeypatch):
    from dr3.data.npz import write_npz

    monkeypatch.chdir(tmp_path)
    write_npz("log.npz", load("grid16smoothobs:size=64", discount=0.9))
    method = DQN(hidden=(4,), batch_size=8, discount=0.9)
    run = train(load("log.npz", discount=0.9), method, steps=1, out=tmp_path / "r", env=None, progress=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(training_data(run)) == 64
