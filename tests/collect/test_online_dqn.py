from __future__ import annotations

import dataclasses
import signal
from typing import Any

import numpy as np
import pytest

from dr3.cli import invoke
from dr3.collect import online_dqn as collecting
from dr3.collect.loop import newest, unfinished
from dr3.collect.online_dqn import DQNSchedule, collect_dqn
from dr3.data import load
from dr3.errors import UserError
from dr3.methods import DQN
from dr3.regularizers import DR3
from dr3.runs.checkpoints import Checkpoints

METHOD = DQN(hidden=(16,), batch_size=8, learning_rate=0.01, target_period=10, discount=0.9)
SCHEDULE = DQNSchedule(
    environments=4, steps_per_update=2, buffer=200, warmup=20, epsilon=0.1, epsilon_steps=600.0, limit=9
)


@pytest.fixture(scope="module")
def collected(corridor, tmp_path_factory):
    out = tmp_path_factory.mktemp("replay") / "corridor.npz"
    return collect_dqn(corridor, steps=1200, out=out, method=METHOD, schedule=SCHEDULE, progress=False), load(out)


def test_the_file_is_the_table(collected) -> None:
    table, read = collected
    assert read.fingerprint() == table.fingerprint()
    assert read.world == "corridor"
    assert read.observations.dtype == np.bool_


def test_every_row_is_a_step_of_the_world(collected, corridor) -> None:
    data, _ = collected
    cells = data.observations[:].argmax(axis=1)
    after = np.clip(cells + 2 * data.actions - 1, 0, 4)
    np.testing.assert_array_equal(data.terminals, after == 4)
    np.testing.assert_array_equal(data.rewards, data.terminals.astype(np.float32))
    going_on = ~data.terminals
    np.testing.assert_array_equal(data.next_observations[:].argmax(axis=1)[going_on], after[going_on])


def test_episodes_are_contiguous_and_begin_at_the_start(collected) -> None:
    data, _ = collected
    new = np.append(True, data.episodes[1:] != data.episodes[:-1])
    assert len(np.unique(data.episodes)) == new.sum()
    assert (data.observations[:].argmax(axis=1)[new] == 0).all()
    within = np.flatnonzero(~new)
    np.testing.assert_array_equal(data.next_observations[within - 1], data.observations[within])
    np.testing.assert_array_equal(data.next_actions[within - 1], data.actions[within])
    assert data.next_action_known[within - 1].all()
    assert data.next_action_known.sum() == len(within)


def test_a_cap_is_a_time_out_whose_next_state_is_where_it_got_to(collected) -> None:
    data, _ = collected
    lengths = np.bincount(data.episodes)
    ends = np.flatnonzero(np.append(data.episodes[1:] != data.episodes[:-1], True))
    assert (data.terminals | data.timeouts)[ends].all()
    assert (data.terminals | data.timeouts).sum() == len(ends)
    capped = ends[(lengths == 9) & ~data.terminals[ends]]
    assert len(capped) > 3
    assert lengths.max() == 9
    cut = data.timeouts[ends] & (lengths < 9)
    assert cut.sum() <= SCHEDULE.environments


def test_it_learns(collected) -> None:
    """Straight to the end is four steps; acting at random mostly runs out of time."""
    data, _ = collected
    early, late = data.rows(slice(0, 100)), data.rows(slice(len(data) - 200, len(data)))
    assert late.rewards.mean() > 2 * early.rewards.mean()


def test_going_on_after_a_stop_gives_the_same_file(collected, corridor, tmp_path, monkeypatch) -> None:
    out = tmp_path / "corridor.npz"
    real = collecting.advance

    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(collecting, "advance", interrupted)
    ask: Any = {"steps": 1200, "out": out, "method": METHOD, "schedule": SCHEDULE, "progress": False}
    with pytest.raises(KeyboardInterrupt):
        collect_dqn(corridor, **ask)
    assert not out.exists()
    monkeypatch.setattr(collecting, "advance", real)
    with pytest.raises(UserError, match="unfinished collection with another seed"):
        collect_dqn(corridor, **ask, seed=1)
    assert collect_dqn(corridor, **ask).fingerprint() == collected[0].fingerprint()
    assert [file.name for file in tmp_path.iterdir()] == ["corridor.npz"]
    with pytest.raises(UserError, match="is there already"):
        collect_dqn(corridor, **ask)


def test_a_regularizer_is_part_of_what_the_agent_learns_and_of_what_a_collection_is(
    collected, corridor, tmp_path, monkeypatch
) -> None:
    ask: Any = {"steps": 1200, "method": METHOD, "schedule": SCHEDULE, "progress": False}
    with_dr3 = collect_dqn(corridor, out=tmp_path / "dr3.npz", regularizer=DR3(1.0), **ask)
    assert with_dr3.fingerprint() != collected[0].fingerprint()
    np.testing.assert_array_equal(with_dr3.actions[:20], collected[0].actions[:20])  # before the first update
    monkeypatch.setattr(collecting, "advance", lambda *_, **__: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(AttributeError):  # stopped in the middle: nothing came back
        collect_dqn(corridor, out=tmp_path / "x.npz", regularizer=DR3(1.0), **ask)
    with pytest.raises(UserError, match="unfinished collection with another regularizer"):
        collect_dqn(corridor, out=tmp_path / "x.npz", **ask)
    with pytest.raises(UserError, match="A regularizer is None or one such as"):
        collect_dqn(corridor, out=tmp_path / "y.npz", **ask | {"regularizer": "dr3"})


SETTINGS = {"world": "corridor", "steps": 3}


def test_a_collection_is_held_while_it_lasts_and_its_folder_goes_at_the_end(tmp_path) -> None:
    folder, file = tmp_path / "x.npz.unfinished", tmp_path / "x.npz"
    with unfinished(folder, SETTINGS, file):
        with pytest.raises(UserError, match="is in use by another process"), unfinished(folder, SETTINGS, file):
            pytest.fail("a second one began")
        assert (folder / "config.json").exists()
    assert not folder.exists()


def test_a_start_that_comes_when_a_twin_has_ended_is_refused(tmp_path) -> None:
    file = tmp_path / "x.npz"
    file.write_text("")
    with pytest.raises(UserError, match="is there already"), unfinished(tmp_path / "x.npz.unfinished", SETTINGS, file):
        pytest.fail("began")
    assert list(tmp_path.iterdir()) == [file]


def test_a_damaged_record_of_a_collection_is_named(tmp_path) -> None:
    (tmp_path / "config.json").write_text('{"world": ')
    with pytest.raises(UserError, match=r"config\.json is damaged"), unfinished(tmp_path, SETTINGS, tmp_path / "x.npz"):
        pytest.fail("began")


def test_a_state_that_is_whole_but_lost_an_array_gives_way_to_the_one_before(tmp_path) -> None:
    states, tree = Checkpoints(tmp_path), {"a": np.arange(3), "b": np.arange(4)}
    for step in (1, 2, 3):
        states.save(step, {name: column + step for name, column in tree.items()})
    states.save(2, {"a": tree["a"]})
    states.path(3).write_bytes(b"")
    np.testing.assert_array_equal(newest(states, tree)["a"], tree["a"] + 1)
    states.path(1).unlink()
    assert newest(states, tree) is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"environments": 6, "steps_per_update": 4}, "steps_per_update is 4, which does not divide environments, 6"),
        ({"epsilon": 1.5}, "epsilon is a probability"),
        ({"buffer": 0}, "buffer must be at least 1"),
    ],
)
def test_schedules_that_cannot_be_are_refused(corridor, tmp_path, change, sentence) -> None:
    with pytest.raises(UserError, match=sentence):
        collect_dqn(
            corridor, steps=10, out=tmp_path / "x.npz", method=METHOD, schedule=dataclasses.replace(SCHEDULE, **change)
        )


def test_the_command_refuses_what_is_not_there(capsys, tmp_path) -> None:
    assert invoke(["data", "collect", "ppo", "--out", "x.npz"]) == 2
    assert invoke(["data", "collect", "dqn", "--env", "minatar/pong", "--out", str(tmp_path / "x.npz")]) == 2
    said = capsys.readouterr().err
    assert "There is no command 'dr3 data collect ppo'" in said
    assert "no game 'minatar/pong'" in said
