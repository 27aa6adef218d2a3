"""The demo from end to end, at its smallest."""

from __future__ import annotations

import json
import signal
from contextlib import nullcontext
from threading import Event

import numpy as np
import pytest

from dr3.cli import demo, invoke
from dr3.paper import demonstration, findings, gridworlds, minatar_sample
from dr3.paper.findings import Finding, make
from dr3.paper.minatar_sample import breakout_curves, judge_breakout
from dr3.runs import Runs, digest
from dr3.stats import carried_on
from dr3.training.evaluation import ExactGridworld


def test_the_demo_writes_findings_and_pictures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert invoke(["demo", "--smoke", "--out", "demo", "--json", "copy.json"]) == 0
    folder = tmp_path / "demo" / "8x8-40"
    record = json.loads((tmp_path / "copy.json").read_text())
    assert record == json.loads((folder / "findings.json").read_text())
    found = [one["id"] for one in record["findings"]]
    assert found == ["out-of-sample-actions", "target-update-frequency", "dr3", "minatar"]
    said = " ".join(capsys.readouterr().out.split())
    for one in record["findings"]:
        assert isinstance(one["holds"], bool)
        assert one["claim"]
        assert one["rule"]
        assert one["numbers"]
        assert (folder / f"{one['id']}.png").stat().st_size > 10_000
        assert f"{one['id']}.png" in said
    numbers = record["findings"][2]["numbers"]
    assert all(len(values) == 2 for values in numbers["final_dot_product_by_seed"].values())
    # The verdict follows from the numbers by the rule that stands beside it.
    dots, returns = (
        {name: np.median(values) for name, values in numbers[key].items()}
        for key in ("final_dot_product_by_seed", "average_return_by_seed")
    )
    better = returns["dqn+dr3"] >= returns["dqn"]
    assert record["findings"][2]["holds"] == bool(dots["dqn+dr3"] < dots["dqn"] and better)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--full", "--smoke"], "choose one of them"),
        (["--out", "file"], "cannot be a folder: "),
        (["--json", "."], ". is a folder, but a file is to be written"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_is_trained(tmp_path, monkeypatch, capsys, flags, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(demonstration, "findings", lambda *_: pytest.fail("trained before the outputs were looked at"))
    assert invoke(["demo", *flags]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_reaches_the_training_that_runs(tmp_path, monkeypatch, capsys, number):
    """Four runs, one at a time: the signal comes while the second is held up at its first evaluation."""
    curves = gridworlds.dr3_curves(gridworlds.SMOKE).values()
    monkeypatch.setattr(findings, "available_cores", lambda: 1)
    monkeypatch.setattr(demonstration, "findings", lambda sizes, out, finished: make(curves, tmp_path, finished))
    held_up, asked = Event(), Event()
    evaluate = ExactGridworld.__call__

    def hold_up_the_second(self, policy, *, step, **options):
        if step == 0 and len(_folders(tmp_path)) == 2:
            held_up.set()
            assert asked.wait(60)
        return evaluate(self, policy, step=step, **options)

    def finished(done, of):
        assert (done, of) == (1, 4)
        assert held_up.wait(60)
        signal.raise_signal(number)
        asked.set()

    monkeypatch.setattr(demo, "_progress", lambda: nullcontext(finished))
    with monkeypatch.context() as patches:
        patches.setattr(ExactGridworld, "__call__", hold_up_the_second)
        with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit) as stopped:
            invoke(["demo", "--smoke"])
    assert number == signal.SIGINT or getattr(stopped.value, "code", None) == 143
    assert "Stopped, everything saved; the same command goes on from there." in capsys.readouterr().err
    first, second = sorted(map(Runs, _folders(tmp_path)), key=lambda run: -run.status["step"])
    assert first.status["finished"]
    assert 0 < second.status["step"] < gridworlds.SMOKE.updates
    assert second.folder.state.steps()[-1] == second.status["step"]

    gone_on, undisturbed = (make(curves, out, lambda done, of: None) for out in (tmp_path, tmp_path / "undisturbed"))
    for curve in curves:
        assert list(map(digest, gone_on[curve])) == list(map(digest, undisturbed[curve]))


def _folders(out):
    return sorted((out / "runs").rglob("seed-*"))


def test_an_extra_in_brackets_is_printed(capsys):
    found = Finding("minatar", "a claim", "a rule", True, "pip install 'dr3[minatar]'", {}, {})
    demo._print([found], [], {"seconds": 1.0})
    assert "dr3[minatar]" in capsys.readouterr().out


def test_a_frozen_member_stays_where_it_was():
    np.testing.assert_array_equal(carried_on(np.array([1.0, 2.0, np.nan, np.nan])), [1, 2, 2, 2])


@pytest.mark.parametrize("played", [True, False])
def test_the_finding_on_a_game_is_judged_with_what_there_is(tmp_path, monkeypatch, played):
    if played:
        pytest.importorskip("pgx")
    else:
        monkeypatch.setattr(minatar_sample, "can_play", lambda: False)
    curves = breakout_curves(updates=20, seeds=1)
    found = judge_breakout(curves, make(curves.values(), tmp_path, lambda done, of: None))
    assert found.numbers["played"] is played
    assert ("average_return_by_seed" in found.numbers) is played
    assert ("pip install" in found.sentence) is not played
    dots = {name: of[0] for name, of in found.numbers["final_dot_product_by_seed"].items()}
    if not played:
        assert found.holds is (dots["cql+dr3"] < dots["cql"])
