"""Where results go is looked at before the work, not after it; and so are numbers that cannot be meant."""

from __future__ import annotations

import pytest

from dr3.cli import invoke


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Carry out a command line that must be refused, in a folder with a `file`: its sentence."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")

    def call(line):
        assert invoke(line.split()) == 2
        assert [path.name for path in tmp_path.iterdir()] == ["file"]
        return capsys.readouterr().err

    return call


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--picture file/curves.png", "file cannot be a folder: "),
        ("--picture curves.doc", "curves.doc: a picture is written as .png"),
        ("--picture .", ". is a folder, but a file is to be written"),
        ("--coefficients -1", "coefficients must be at least 0, not -1.0"),
        ("--coefficients 0.1 nan", "coefficients must be at least 0, not nan"),
    ],
)
def test_tuning_is_refused_before_it_trains(refused, monkeypatch, flags, says):
    monkeypatch.setattr("dr3.cli.tune.train_with", lambda *_: pytest.fail("trained"))
    assert says in refused(f"tune dqn --data grid16smoothobs --steps 10 {flags}")


@pytest.mark.parametrize("verb", ["check", "watch"])
def test_theory_is_refused_before_it_is_computed(refused, monkeypatch, verb):
    monkeypatch.setattr("dr3.theory.checks.run_checks", lambda **_: pytest.fail("computed"))
    monkeypatch.setattr("dr3.theory.watch.watch", lambda *_, **__: pytest.fail("computed"))
    assert "file cannot be a folder: " in refused(f"theory {verb} --plots file")


@pytest.mark.parametrize("seeds", [0, -3])
def test_theory_is_not_watched_without_seeds(refused, seeds):
    assert f"--seeds must be at least 1, not {seeds}" in refused(f"theory watch --seeds {seeds}")


def test_a_report_is_refused_before_it_is_measured(refused, small_run, monkeypatch):
    monkeypatch.setattr("dr3.reports.report.write_report", lambda *_, **__: pytest.fail("measured"))
    assert "file cannot be a folder: " in refused(f"report {small_run} --out file/report.html")


def test_drawers_are_refused_before_they_are_acted(refused):
    pytest.importorskip("mujoco")
    assert "file cannot be a folder: " in refused("data collect drawers --task drawers/closed --out file")


def test_a_sweep_is_refused_before_it_trains(refused, tmp_path):
    grid = tmp_path.parent / "grid.toml"
    grid.write_text("steps = 5\ndata = 'grid16smoothobs'\n[methods.dqn]")
    assert "file cannot be a folder: " in refused(f"sweep {grid} --out file")


def test_statistics_are_refused_before_they_are_computed(refused):
    assert "file cannot be a folder: " in refused("stats nothing.jsonl --figures file")
