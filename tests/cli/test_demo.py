"""The demo from end to end, at its smallest."""

from __future__ import annotations

import json
import signal
from contextlib import nullcontext
from threading import Event

import pytest

from dr3.cli import demo, invoke
from dr3.paper import demonstration
from dr3.paper.demonstration import SMOKE, breakout, demonstrate, experiments
from dr3.paper.experiments import Folders, Plan, Result
from dr3.runs import Runs, digest
from dr3.training.evaluation import ExactGridworld


@pytest.mark.slow
def test_the_demo_writes_findings_and_pictures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert invoke(["demo", "--smoke", "--out", "demo", "--json"]) == 0
    folder = tmp_path / "demo" / "8x8-40"
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((folder / "findings.json").read_text())
    assert invoke(["demo", "--smoke", "--out", "demo"]) == 0
    found = {one["id"]: one for one in record["findings"]}
    assert list(found) == ["out-of-sample-actions", "target-update-frequency", "dr3", "minatar"]
    said = " ".join(capsys.readouterr().out.split())
    for id, one in found.items():
        assert one["verdict"] in ("shows", "does not show")
        assert one["answers"]
        assert (folder / "laptop" / id / "figure.png").stat().st_size > 10_000
        assert id in said
    # Where DR3 hurts is said world by world.
    assert [cell["place"] for cell in found["dr3"]["answers"][1]["cells"]] == [
        "grid16smoothobs",
        "grid16randomobs",
        "grid16smoothsparse",
        "grid16randomsparse",
    ]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--full", "--smoke"], "choose one of them"),
        (["--out", "file"], "cannot be a folder: "),
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_is_trained(tmp_path, monkeypatch, capsys, flags, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(
        demonstration, "demonstrate", lambda *_: pytest.fail("trained before the outputs were looked at")
    )
    assert invoke(["demo", *flags]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_reaches_the_training_that_runs(tmp_path, monkeypatch, capsys, number):
    """Runs one at a time: the signal comes while the second is held up at its first evaluation."""
    only = experiments(SMOKE)[:1]
    monkeypatch.setattr(demonstration, "available_cores", lambda: 1)
    monkeypatch.setattr(demonstration, "experiments", lambda sizes: only)
    held_up, asked = Event(), Event()
    evaluate = ExactGridworld.__call__

    def hold_up_the_second(self, policy, *, step, **options):
        if step == 0 and len(_runs(tmp_path / "demo")) == 2:
            held_up.set()
            assert asked.wait(60)
        return evaluate(self, policy, step=step, **options)

    def finished(done, of):
        assert (done, of) == (1, 12)
        assert held_up.wait(60)
        signal.raise_signal(number)
        asked.set()

    monkeypatch.setattr(demo, "_progress", lambda: nullcontext(finished))
    with monkeypatch.context() as patches:
        patches.setattr(ExactGridworld, "__call__", hold_up_the_second)
        with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit) as stopped:
            invoke(["demo", "--smoke", "--out", str(tmp_path / "demo")])
    assert number == signal.SIGINT or getattr(stopped.value, "code", None) == 143
    assert "Stopped, everything saved; the same command goes on from there." in capsys.readouterr().err
    first, second = sorted(_runs(tmp_path / "demo"), key=lambda run: -run.status["step"])
    assert first.status["finished"]
    assert 0 < second.status["step"] < SMOKE.gridworlds.updates
    design = only[0].at("laptop", Folders(tmp_path, tmp_path))
    task = next(one for one in design.tasks if one.name == second.path.name)
    stopped_at = second.path
    task.run(stopped_at, progress=False)
    task.run(tmp_path / "undisturbed", progress=False)
    assert digest(Runs(stopped_at)) == digest(Runs(tmp_path / "undisturbed"))


def _runs(out):
    return [Runs(file.parent) for file in sorted(out.rglob("config.json"))]


def test_an_extra_in_brackets_is_printed(capsys):
    found = Result("minatar", "laptop", "shows", "", note="pip install 'dr3[minatar]'")
    demo._print(experiments(SMOKE)[3:], [found], [], {"seconds": 1.0})
    assert "dr3[minatar]" in capsys.readouterr().out


def test_without_the_game_no_policy_is_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(demonstration, "can_play", lambda: False)
    design = breakout(updates=20, seeds=2)
    assert all(task.env is None for task in design.tasks)
    assert "pip install" in design.note
    plan = Plan(experiments(SMOKE)[3:], "laptop", tmp_path, tmp_path)
    (found,) = demonstrate(plan, lambda done, of: None)
    assert [answer.verdict for answer in found.answers] in (["shows"], ["does not show"])
