from __future__ import annotations

import signal
import sys

import pytest

from dr3.cli import invoke
from dr3.cli.sweep import run_command
from dr3.errors import UserError

GRID = """
steps = 600
data = "grid16smoothobs"
regularizers = ["none", "dr3:0.1"]

[methods.dqn]
"""


@pytest.fixture
def sweep(tmp_path, capsys):
    """Carry out `dr3 sweep` on a file of this content: the exit code, what it printed and what it complained about."""

    def call(text, *flags):
        (tmp_path / "grid.toml").write_text(text)
        code = invoke(["sweep", str(tmp_path / "grid.toml"), "--out", str(tmp_path / "out"), *flags])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_a_dry_run_prints_the_tasks_and_does_nothing(sweep, tmp_path):
    code, out, _ = sweep(GRID + "target_period = [10, 20]", "--dry-run")
    assert code == 0
    assert "4 tasks" in out
    assert out.count("to do") == 4
    code, out, _ = sweep(GRID.replace("grid16smoothobs", "gone.npz"), "--dry-run")
    assert code == 0
    assert "file" in out
    assert not (tmp_path / "out").exists()


def test_a_setting_that_cannot_be_is_refused_before_any_work(sweep, tmp_path):
    code, _, err = sweep(GRID + "learning_rate = -1.0")
    assert code == 2
    assert "learning_rate must be" in err
    assert not (tmp_path / "out").exists()


def test_a_task_that_fails_is_exit_code_1(sweep, tmp_path):
    (tmp_path / "damaged.npz").write_bytes(b"PK, and then nothing")
    code, out, err = sweep(GRID.replace("grid16smoothobs", str(tmp_path / "damaged.npz")), "--workers", "1")
    assert code == 1
    assert "Everything is in" in out
    logs = list((tmp_path / "out").glob("*/log.txt"))
    assert len(logs) == 2
    for log in logs:
        assert f"{log.parent.name} failed: {tmp_path / 'damaged.npz'}" in err
        assert f"Its log: {log}" in err
        assert "damaged.npz" in log.read_text()


def test_a_mistake_is_one_sentence_and_exit_code_2(sweep, tmp_path):
    code, _, err = sweep(GRID.replace("grid16smoothobs", "gone.npz"))
    assert code == 2
    assert err == f"dr3: {tmp_path / 'grid.toml'}: there is no file for the data gone.npz.\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--address", "auto"), "--address belongs to the engine ray: add --engine ray."),
        (("--cpus", "1"), "--cpus belongs to the engine ray: add --engine ray."),
        (("--gpus", "0"), "--gpus belongs to the engine ray: add --engine ray."),
        (("--engine", "ray", "--workers", "2"), "--workers belongs to the engine local; on ray --cpus says how many"),
        (("--engine", "ray", "--cpus", "0"), "A task needs at least 1 cpu"),
    ],
)
def test_a_flag_of_the_other_engine_is_refused(sweep, tmp_path, flags, sentence):
    for more in ((), ("--dry-run",)):
        code, _, err = sweep(GRID, *flags, *more)
        assert code == 2
        assert sentence in err
    assert not (tmp_path / "out").exists()


def test_a_wrong_flag_in_what_is_prepared_is_said_once(sweep, tmp_path):
    made = tmp_path / "maze.npz"
    command = f"data collect maze --evn pointmaze/umaze --out {made}"
    grid = GRID.replace("grid16smoothobs", str(made)) + f'[prepare]\n"{made}" = "{command}"'
    code, _, err = sweep(grid, "--workers", "1")
    assert code == 1
    assert f"This command cannot be read: dr3 {command}. Its log: " in err
    (log,) = (tmp_path / "out").glob("prepare-*/log.txt")
    assert log.read_text().count("--- process") == 1
    assert "attempt" not in log.read_text()


def test_a_command_that_cannot_be_read_is_a_mistake(capsys):
    with pytest.raises(UserError, match=r"cannot be read: dr3 data collect maze --evn pointmaze/umaze\."):
        run_command(["data", "collect", "maze", "--evn", "pointmaze/umaze"])
    assert "--evn" in capsys.readouterr().err


def test_a_command_that_only_prints_its_help_is_none(capsys):
    run_command(["data", "collect", "maze", "--help"])
    assert "--env" in capsys.readouterr().out


def test_a_command_that_is_refused_says_why():
    with pytest.raises(UserError, match="There is no maze 'garden'"):
        run_command(["data", "collect", "maze", "--env", "garden"])


def test_a_signal_to_stop_passes_through_a_command(monkeypatch):
    monkeypatch.setattr("dr3.cli.carry_out", lambda arguments: sys.exit(128 + signal.SIGTERM))
    with pytest.raises(SystemExit) as stopped:
        run_command(["data"])
    assert stopped.value.code == 143
