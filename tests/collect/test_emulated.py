from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

from dr3.cli import invoke as command
from dr3.collect.emulated_dqn import AtariSchedule, EmulatedAgent, collect_emulated_dqn
from dr3.data import DiscreteActions, load, read_dqn_replay
from dr3.errors import UserError
from dr3.methods import DQN
from dr3.regularizers import DR3

METHOD = DQN(network="mlp", hidden=(16,), batch_size=16, learning_rate=0.01, target_period=20, discount=0.9)
SCHEDULE = AtariSchedule(steps_per_update=2, buffer=700, warmup=20, epsilon=0.1, epsilon_steps=300.0)
ASK: dict[str, Any] = {"steps": 900, "method": METHOD, "schedule": SCHEDULE, "progress": False}


@pytest.fixture(scope="module")
def collected(ladder, tmp_path_factory):
    out = tmp_path_factory.mktemp("replay") / "ladder.npz"
    collect_emulated_dqn(ladder, out=out, **ASK)
    return load(out)


def test_every_row_is_a_step_of_the_world(collected) -> None:
    """What the frames say of rung and age fits the actions, the ends and the clipped rewards."""
    data = collected
    now, following = data.observations[:][:, 0, :, -1].astype(int), data.next_observations[:][:, 0, :, -1].astype(int)
    going_on = ~data.terminals
    np.testing.assert_array_equal(following[going_on, 1], now[going_on, 1] + 1)
    climbed = following[going_on, 0] - now[going_on, 0]
    assert set(climbed[data.actions[going_on] == 0]) == {0}
    assert set(climbed[data.actions[going_on] == 1]) == {0, 1}
    np.testing.assert_array_equal(data.rewards, data.terminals.astype(np.float32))
    np.testing.assert_array_equal(data.timeouts[:-1], (now[:, 1] == 9)[:-1] & ~data.terminals[:-1])
    assert data.timeouts[-1] or data.terminals[-1]
    assert (data.world, len(data), data.action_space.count) == ("ladder", 900, 2)


def test_a_stack_holds_the_frames_before_it_and_blanks_before_the_first(collected) -> None:
    ages = collected.observations[:][:, 0, 1, :].astype(int)
    np.testing.assert_array_equal(ages, np.maximum(ages[:, -1:] + np.arange(-3, 1), 0))
    following = collected.next_observations[~collected.terminals][:, 0, 1, :].astype(int)
    np.testing.assert_array_equal(following, np.maximum(following[:, -1:] + np.arange(-3, 1), 0))


def test_it_learns(collected) -> None:
    """Straight up is four steps; acting at random mostly runs out of time."""
    assert collected.rewards[-200:].mean() > 1.5 * collected.rewards[:100].mean()


def test_a_regularizer_is_part_of_what_the_agent_learns(collected, ladder, tmp_path) -> None:
    data = collect_emulated_dqn(ladder, out=tmp_path / "ladder.npz", regularizer=DR3(1.0), **ASK)
    assert data.fingerprint() != collected.fingerprint()
    np.testing.assert_array_equal(data.actions[:20], collected.actions[:20])  # before the first update


class Crash(Exception):
    pass


def test_stops_and_kills_change_nothing(collected, ladder, tmp_path, monkeypatch) -> None:
    out, real = tmp_path / "ladder.npz", EmulatedAgent.step
    with monkeypatch.context() as patches:

        def stopped(agent, place):
            if place.step == 250:
                signal.raise_signal(signal.SIGINT)
            return real(agent, place)

        patches.setattr(EmulatedAgent, "step", stopped)
        with pytest.raises(KeyboardInterrupt):
            collect_emulated_dqn(ladder, out=out, **ASK)
    assert not out.exists()
    with pytest.raises(UserError, match="unfinished collection with another seed"):
        collect_emulated_dqn(ladder, out=out, seed=1, **ASK)
    with monkeypatch.context() as patches:

        def killed(agent, place):
            after = real(agent, place)
            if place.step == 333:
                patches.setattr("dr3.collect.loop.SAVE_INTERVAL", -1.0)  # the next step is saved
            if place.step == 340:
                raise Crash  # and this one is in the log, but in no state
            return after

        patches.setattr(EmulatedAgent, "step", killed)
        with pytest.raises(Crash):
            collect_emulated_dqn(ladder, out=out, **ASK)
    assert collect_emulated_dqn(ladder, out=out, **ASK).rewards.sum() == collected.rewards.sum()
    assert load(out).fingerprint() == collected.fingerprint()
    assert [file.name for file in tmp_path.iterdir()] == ["ladder.npz"]
    with pytest.raises(UserError, match="is there already"):
        collect_emulated_dqn(ladder, out=out, **ASK)


def test_an_emulator_that_plays_otherwise_is_noticed(ladder, tmp_path, monkeypatch) -> None:
    real = EmulatedAgent.step

    def stopped(agent, place):
        if place.step == 12:
            signal.raise_signal(signal.SIGINT)
        return real(agent, place)

    monkeypatch.setattr(EmulatedAgent, "step", stopped)
    with pytest.raises(KeyboardInterrupt):
        collect_emulated_dqn(ladder, out=tmp_path / "x.npz", **ASK)
    games = type(ladder.open(1))
    played = games.step
    monkeypatch.setattr(games, "step", lambda self, actions: played(self, 1 - np.asarray(actions)))
    with pytest.raises(UserError, match="does not play as it did"):
        collect_emulated_dqn(ladder, out=tmp_path / "x.npz", **ASK)


def test_a_folder_of_files_holds_the_same_steps(collected, ladder, tmp_path) -> None:
    """The format knows no time-outs: as in the public replays they are terminals, and the last step has no s'."""
    collect_emulated_dqn(ladder, out=tmp_path / "replay", **ASK)
    data = read_dqn_replay(tmp_path / "replay", num_actions=2)
    kept = slice(len(collected) - (not collected.terminals[-1]))
    np.testing.assert_array_equal(data.observations[:], collected.observations[kept])
    np.testing.assert_array_equal(data.actions, collected.actions[kept])
    np.testing.assert_array_equal(data.rewards, collected.rewards[kept])
    ends = (collected.terminals | collected.timeouts)[kept]
    np.testing.assert_array_equal(data.terminals, ends)
    np.testing.assert_array_equal(data.next_observations[:][~ends], collected.next_observations[kept][~ends])
    assert 45 < len(list((tmp_path / "replay").glob("$store$_action_ckpt.*.gz"))) <= 50
    assert [file.name for file in tmp_path.iterdir()] == ["replay"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"out": "x.hdf5"}, "written as .npz or a folder"),
        ({"method": DQN(batch_size=0)}, "batch_size must be at least 1"),
        ({"steps": 0}, "steps must be at least 1"),
    ],
)
def test_what_cannot_be_is_refused(ladder, tmp_path, change, sentence) -> None:
    chosen: dict[str, Any] = {**ASK, "out": "x.npz", **change}
    with pytest.raises(UserError, match=sentence):
        collect_emulated_dqn(ladder, **{**chosen, "out": tmp_path / chosen["out"]})
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"steps_per_update": 0}, "steps_per_update must be at least 1"), ({"epsilon": 2.0}, "epsilon is a probability")],
)
def test_a_schedule_that_cannot_be_is_refused_when_constructed(settings, sentence) -> None:
    with pytest.raises(UserError, match=sentence):
        AtariSchedule(**settings)


def test_the_command_collects_a_game(capsys, tmp_path, monkeypatch) -> None:
    """Too short to learn from: no network but the acting one is compiled."""
    pytest.importorskip("ale_py")
    monkeypatch.chdir(tmp_path)
    words = ["data", "collect", "dqn", "--env", "atari/Pong", "--steps", "60", "--network", "mlp", "--hidden", "4"]
    assert command([*words, "--seed", "1"]) == 0
    assert "60 steps in 1 episodes are in Pong/1/replay_logs" in capsys.readouterr().out
    data = load("Pong/1/replay_logs")
    assert (data.world, data.observations.shape) == ("atari/Pong", (59, 84, 84, 4))
    assert data.action_space == DiscreteActions(6)
    assert command(["data", "collect", "dqn", "--env", "atari/Ping", "--out", str(tmp_path / "x.npz")]) == 2
    assert "no game 'atari/Ping'" in capsys.readouterr().err
