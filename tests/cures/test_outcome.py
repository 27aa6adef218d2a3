"""The ranking, and a whole cure through the command."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dr3.cli import invoke
from dr3.cli.cure import _fitting
from dr3.cures import CureRow, rank
from dr3.cures.churn import churn
from dr3.cures.page import number


def row(name, returns) -> CureRow:
    return CureRow(name, "", "", len(returns), 0, 0, {}, {}, None, None, tuple(returns), None)


def test_a_clear_winner():
    found = rank([row("none", [1.0, 1.1, 0.9, 1.0]), row("dr3", [2.0, 2.1, 1.9, 2.0])])
    assert found.best == ("dr3",)
    assert found.decided


def test_it_abstains_where_seeds_do_not_tell():
    noisy = np.random.default_rng(0).normal(size=(3, 5))
    found = rank([row(name, values) for name, values in zip(("none", "dr3", "beer"), noisy, strict=True)])
    assert set(found.best) == {"none", "dr3", "beer"}
    assert "no remedy is shown to be better than none" in found.sentence
    # Two seeds that agree in sign are no proof, by hand: t(1, 0.975) = 12.7 > 3.
    assert not rank([row("none", [1.0, 1.0]), row("dr3", [2.0, 3.0])]).decided


def test_several_above_none():
    found = rank([row("none", [0.0, 0.1, 0.0, 0.1]), row("a", [5.0, 5.1, 5.0, 5.2]), row("b", [5.1, 5.0, 5.1, 5.0])])
    assert found.best == ("a", "b")
    assert "all of them are above none" in found.sentence


def test_without_none_nothing_is_said_of_it():
    assert "above none" not in rank([row("a", [1.0, 1.1]), row("b", [1.1, 1.0])]).sentence


@pytest.mark.parametrize("rows", [[row("none", []), row("dr3", [])], [row("none", [1.0]), row("dr3", [2.0])]])
def test_without_returns_or_seeds_there_is_no_ranking(rows):
    assert rank(rows).best == ()


def test_churn_by_hand_and_what_is_0_but_for_rounding():
    assert churn([1.0, 2.0, 3.0], [2.0, 2.0, -4.0]) == pytest.approx((1 + 0 + 7) / (2 + 2 + 4))
    assert [number(one) for one in (-2.9e-13, 0.0123456, 17.06)] == ["0", "0.0123", "17.1"]


def test_columns_go_into_the_first_table_that_has_room():
    # With two spaces before each: 8 + 6 of 15, so that the 7 of `srank` start another, and the 3 of `x` still fit.
    rows = [{"srank": "1", "return": "2", "gain": "+1.0"}, {"x": "", "srank": "10000"}]
    assert _fitting(rows, 17) == [["return", "gain", "x"], ["srank"]]
    assert _fitting(rows, 24) == [["return", "gain", "srank", "x"]]


@pytest.mark.slow
def test_a_cure_from_beginning_to_end(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["cure", "grid16smoothobs", "--method", "dqn", "--hidden", "6", "--batch-size", "8", "--seeds", "2"]
    command += ["--remedies", "dr3", "early-stop", "--workers", "1", "--out", "out", "--json"]
    assert invoke([*command, "--steps", "20"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in first["rows"]] == ["none", "dr3", "early-stop"]
    assert first["rows"][1]["flags"] == "--regularizer dr3:0.03"
    assert len(first["rows"][1]["by_seed"]) == 2
    assert first["rows"][1]["returns"]["gain"] is not None
    assert first["rows"][2]["seconds_per_update"] is None
    assert all(set(one["measured"]) == {"Q outside", "dot product", "srank", "churn"} for one in first["rows"])
    page = (tmp_path / "out" / "cure.html").read_text()
    assert "dr3:0.03" in page
    assert first["ranking"]["sentence"] in page
    # The same again does nothing new; more steps lengthen it.
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").glob("*/metrics.jsonl")}
    assert len(before) == 2
    assert invoke([*command, "--steps", "20"]) == 0
    assert before == {file: file.stat().st_mtime_ns for file in before}
    assert invoke([*command, "--steps", "30"]) == 0
    assert all(json.loads(file.read_text().splitlines()[-1])["step"] == 30 for file in before)
    assert len(list((tmp_path / "out").glob("*/metrics.jsonl"))) == 2
    assert invoke([*command, "--steps", "10"]) == 2
    capsys.readouterr()


def test_mistakes_are_one_sentence(capsys):
    assert invoke(["cure", "--seeds", "2"]) == 2
    assert invoke(["cure", "grid16smoothobs", "--remedies", "nothing"]) == 2
    assert "no remedy 'nothing'" in capsys.readouterr().err
