from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco")

from dr3.cli import invoke
from dr3.collect import drawers as collection
from dr3.collect.drawers import collect_drawers
from dr3.collect.drawers_policies import act, close_drawer, open_drawer, take_ball
from dr3.collect.drawers_skills import PRIOR, solve
from dr3.data import Frames, load
from dr3.envs import make_world
from dr3.envs.drawers import DrawersEnv
from dr3.envs.drawers_scene import NEUTRAL
from dr3.errors import UserError
from dr3.runs.folder import RunFolder


def collect_little(task: str, out: Path, seed: int = 0, **how: Any):
    chosen: dict[str, Any] = {"episodes": 2, "steps": 3, **how}
    return collect_drawers(task, out=out, **chosen, seed=seed, workers=1, progress=False)


def play(env: DrawersEnv, script, steps: int) -> dict:
    """The last info of a script without noise."""
    info = {}
    for _ in range(steps):
        *_, info = env.step(np.clip(next(script, np.zeros(8)), -0.9, 0.9))
    return info


@pytest.fixture
def blind(monkeypatch) -> None:
    """Where nothing is looked at, nothing need be drawn."""
    monkeypatch.setattr("dr3.envs.drawers_scene.Scene.picture", lambda self, size: np.zeros((48, 48, 3), np.uint8))


@pytest.mark.parametrize(
    ("task", "script", "drawer", "where"),
    [
        ("drawers/closed", open_drawer, "bottom", (0.95, 1.01)),
        ("drawers/blocked-by-drawer", close_drawer, "top", (-0.01, 0.05)),
        ("drawers/blocked-by-drawer", open_drawer, "bottom", (-0.01, 0.2)),  # the upper drawer is in the way
        ("drawers/blocked-by-object", open_drawer, "bottom", (-0.01, 0.5)),  # the block is
    ],
)
def test_what_opens_and_closes_a_drawer(blind, task, script, drawer, where) -> None:
    env = DrawersEnv(task)
    env.reset(seed=0)
    low, high = where
    assert low < play(env, script(env.scene, drawer), 30)[drawer] < high


def test_the_wrong_way_opens_nothing(blind) -> None:
    env = DrawersEnv("drawers/closed")
    env.reset(seed=0)
    assert play(env, open_drawer(env.scene, "bottom", wrong=True), 30)["bottom"] < 0.05


def test_closing_the_fingers_is_a_phase_and_the_ball_is_held_at_the_end(blind) -> None:
    env = DrawersEnv("drawers/open")
    env.reset(seed=0)
    script = take_ball(env.scene, np.random.default_rng(0))
    fingers, rewards = [], []
    for wanted in script:
        fingers.append(wanted[6])
        rewards.append(env.step(np.clip(wanted, -0.9, 0.9))[1])
    closing = fingers.index(-0.7)
    assert fingers[:closing] == [0.7] * closing
    assert fingers[closing:] == [-0.7] * (len(fingers) - closing)
    assert len(fingers) - closing > 8  # closing, lifting, home, holding
    assert rewards[-5:] == [1.0] * 5


def test_a_ball_that_was_missed_is_not_held(blind) -> None:
    env = DrawersEnv("drawers/open")
    env.reset(seed=0)
    rewards = [env.step(one)[1] for one in take_ball(env.scene, np.random.default_rng(0), wrong=True)]
    assert not any(rewards)


def test_a_script_that_is_over_asks_for_nothing_and_actions_are_noisy_and_clipped() -> None:
    random = np.random.default_rng(0)
    actions = np.stack([act(iter(()), random) for _ in range(400)])
    assert actions.dtype == np.float32
    np.testing.assert_allclose(actions.mean(axis=0), [0] * 8, atol=0.03)
    np.testing.assert_allclose(actions.std(axis=0), 0.1, atol=0.02)
    pushed = act(iter([np.array([9.0, -9.0, *[0.0] * 6])]), random)
    assert pushed[:2].tolist() == pytest.approx([0.9, -0.9])


def test_every_task_has_a_way() -> None:
    for task in (*PRIOR, "drawers/open"):
        env = DrawersEnv(task)
        env.scene.reset(top=0.0, bottom=0.0, ball=np.array([-0.1, 0.28, 0.04]), block=np.array([0.29, 0.28, 0.07]))
        first = list(islice(solve(task, env.scene, np.random.default_rng(0)), 1))
        assert first[0].shape == (8,)


def test_a_second_start_is_refused_while_the_first_acts(tmp_path) -> None:
    with (
        RunFolder(tmp_path / "closed" / "unfinished").locked(),
        pytest.raises(UserError, match="unfinished is in use by another process"),
    ):
        collect_little("drawers/closed", tmp_path / "closed")


@pytest.mark.usefixtures("camera")
def test_two_files_one_without_rewards(tmp_path) -> None:
    measured = collect_little("drawers/blocked-by-drawer", tmp_path)
    assert [(one.skill[:5], one.episodes) for one in measured] == [("close", 2), ("open ", 2), ("grasp", 2)]
    prior, task = load(tmp_path / "prior.npz"), load(tmp_path / "task.npz")
    assert len(prior) == 4 * 3
    assert len(task) == 2 * 3
    assert not prior.rewards.any()
    assert prior.world == task.world == "drawers/blocked-by-drawer"
    assert prior.observations.shape == (12, 48, 48, 3)
    assert prior.observations.dtype == np.uint8
    assert isinstance(prior.observations, Frames)
    assert len(prior.observations.stored) == 4 * 4  # s' of a row is s of the next
    np.testing.assert_array_equal(prior.next_observations[0], prior.observations[1])
    assert prior.timeouts.tolist() == [False, False, True] * 4
    assert not prior.terminals.any()
    # The files say which skill comes when: the half open drawer, then the closed one.
    assert (prior.observations[0] != prior.observations[3]).any()
    kept = json.loads((tmp_path / "success.json").read_text())
    assert kept["measured"][2]["episodes"] == 2
    assert not (tmp_path / "unfinished").exists()
    assert len(load(f"{tmp_path}/prior.npz:trajectories=50%+{tmp_path}/task.npz:trajectories=50%")) == 6 + 3
    with pytest.raises(UserError, match="is there already"):
        collect_little("drawers/blocked-by-drawer", tmp_path)


def test_the_same_episodes_as_numbers(tmp_path, blind) -> None:
    collect_little("drawers/closed", tmp_path, observation="state", steps=40, episodes=3)
    prior, task = load(tmp_path / "prior.npz"), load(tmp_path / "task.npz")
    assert prior.world == 'drawers/closed{"observation": "state"}'
    assert make_world(prior.world).observation_space.shape == prior.observations.shape[1:] == (15,)
    # An episode ends with its script, at home; the next begins there.
    for table, opened in ((prior, 0), (task, 1)):
        seen, following = np.asarray(table.observations), np.asarray(table.next_observations)
        assert table.timeouts.sum() == 3
        assert len(table) < 3 * 40
        ends = np.flatnonzero(table.timeouts)
        np.testing.assert_allclose(following[ends, 2], NEUTRAL[2], atol=0.02)
        starts = np.append(0, ends[:-1] + 1)
        np.testing.assert_allclose(seen[starts, 2], NEUTRAL[2], atol=1e-3)
        np.testing.assert_allclose(seen[starts, -1], opened, atol=1e-6)
        within = np.flatnonzero(~table.timeouts)
        np.testing.assert_array_equal(following[within], seen[within + 1])


@pytest.mark.usefixtures("camera")
def test_stopped_and_gone_on_it_ends_with_the_same_files(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(collection, "EPISODES_PER_PART", 1)
    collect_little("drawers/closed", tmp_path / "whole")

    acted, act_part = [], collection.act_part

    def act_one_part(part):
        if acted:
            raise KeyboardInterrupt
        acted.append(part)
        return act_part(part)

    monkeypatch.setattr(collection, "act_part", act_one_part)
    with pytest.raises(KeyboardInterrupt):
        collect_little("drawers/closed", tmp_path / "stopped")
    with pytest.raises(UserError, match="with another seed"):
        collect_little("drawers/closed", tmp_path / "stopped", seed=1)
    monkeypatch.setattr(collection, "act_part", act_part)
    collect_little("drawers/closed", tmp_path / "stopped")
    for kind in ("prior", "task"):
        one, other = (load(tmp_path / name / f"{kind}.npz") for name in ("whole", "stopped"))
        assert one.fingerprint() == other.fingerprint()


@pytest.mark.usefixtures("camera")
def test_the_command_prints_success_rates(tmp_path, capsys) -> None:
    words = ["--episodes", "1", "--steps", "2", "--workers", "2", "--out", str(tmp_path / "closed")]
    assert invoke(["data", "collect", "drawers", "--task", "drawers/closed", *words]) == 0
    assert "open the bottom drawer: 0 of 1 episodes (0%)" in capsys.readouterr().out
    assert invoke(["data", "collect", "drawers", "--task", "drawers/open", *words]) == 2
    assert "no scripts for the task 'drawers/open'" in capsys.readouterr().err
