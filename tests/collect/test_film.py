from __future__ import annotations

import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("gymnasium_robotics")

from PIL import Image, ImageSequence

from dr3.cli import invoke
from dr3.collect.film import LONGEST, film, quantized, write_gif
from dr3.collect.host_policy import HostPolicy, write_policy
from dr3.data import ContinuousActions, assemble
from dr3.envs import make_world, maze_worlds
from dr3.envs.drawers_tasks import DRAWERS, DrawerTask
from dr3.errors import UserError
from dr3.methods import BC, Spec
from dr3.training import train
from dr3.training.evaluation import Policy
from dr3.training.side_by_side import play_side_by_side


def seen_in(frame: Image.Image) -> bytes:
    return frame.convert("RGB").tobytes()


class Endless(gymnasium.Env):
    """Nothing ends it, and every step pays 1."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 (Gymnasium's own)
    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def reset(self, **_):
        return 0, {}

    def step(self, action):
        return 0, 1.0, False, False, {}

    def render(self):
        return np.zeros((4, 4, 3), np.uint8)


def test_an_episode_without_end_is_filmed_for_so_many_steps(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("dr3.collect.film.make_world", lambda *_, **__: Endless())
    assert invoke(["play", "Endless-v0", "--out", str(tmp_path / "endless.gif")]) == 0
    assert f"the episode's first {LONGEST} steps with a return of {LONGEST}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        invoke(["play", "--help"])
    assert f"its first {LONGEST:,} steps" in capsys.readouterr().out


def test_one_picture_of_so_many_steps_is_kept(monkeypatch) -> None:
    monkeypatch.setattr("dr3.collect.film.make_world", lambda *_, **__: Endless())
    monkeypatch.setattr("dr3.collect.film.LONGEST", 7)
    played = film("Endless-v0", every=3)
    assert (len(played.frames), played.steps, played.total, played.frames_per_second) == (3, 7, 7.0, 20 / 3)
    with pytest.raises(UserError, match="every must be at least 1"):
        film("Endless-v0", every=0)


def test_frames_are_kept_in_few_colours_as_they_are_drawn(monkeypatch) -> None:
    monkeypatch.setattr("dr3.collect.film.make_world", lambda *_, **__: Endless())
    monkeypatch.setattr("dr3.collect.film.LONGEST", 3)
    assert [frame.mode for frame in film("Endless-v0").frames] == ["P"] * 4


@pytest.mark.usefixtures("camera")
def test_an_episode_of_the_drawers_is_a_gif(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(DRAWERS, "drawers/open", DrawerTask("drawers/open", 4, bottom=1.0))
    out = tmp_path / "open.gif"
    assert invoke(["play", "drawers/open", "--policy", "scripted", "--out", str(out)]) == 0
    assert "4 steps with a return of 0" in capsys.readouterr().out
    with Image.open(out) as picture:
        assert len(list(ImageSequence.Iterator(picture))) == 5
        assert picture.size == (480, 480)


@pytest.mark.usefixtures("camera")
def test_a_learned_policy_is_filmed_as_it_was_evaluated(tmp_path, monkeypatch, capsys) -> None:
    """In a maze the 4 numbers that it learned from are those it acts on, not the simulator's."""
    monkeypatch.setitem(maze_worlds.POINT_LIMITS, "umaze", 12)
    rows = 40
    random = np.random.default_rng(0)
    columns = {
        "observations": random.standard_normal((rows, 4)).astype(np.float32),
        "actions": np.full((rows, 2), 0.7, np.float32),
        "rewards": np.zeros(rows, np.float32),
        "terminals": np.arange(rows) == rows - 1,
    }
    method = BC(hidden=(8,), policy_hidden=(8,), batch_size=8)
    data = assemble(columns, source="ways", name="ways")
    train(data, method, steps=4, out=tmp_path / "run", progress=False)
    learned, path = f"{tmp_path / 'run'}@4", tmp_path / "maze.gif"
    last = str(tmp_path / "run")  # nothing was selected
    assert invoke(["play", "pointmaze/umaze", "--policy", last, "--out", str(path), "--seed", "3"]) == 0
    assert "12 steps with a return of 0" in capsys.readouterr().out
    with Image.open(path) as picture:
        assert picture.size == (480, 480)

    seen = []
    monkeypatch.setattr(
        Policy, "__call__", lambda self, rows: seen.append(rows[0].copy()) or np.full((len(rows), 2), 9.0)
    )
    played = film("pointmaze/umaze", learned, seed=3)  # with actions beyond the bounds, which are fitted to them
    assert len(played.frames) == 13
    assert seen_in(played.frames[0]) != seen_in(played.frames[-1])  # the point has moved
    assert {row.shape for row in seen} == {(4,)}
    filmed = list(seen)
    play_side_by_side("pointmaze/umaze", Policy(method, None, Spec((4,), ContinuousActions(2))), [3], 0.99)
    np.testing.assert_array_equal(filmed, seen[len(filmed) :])


@pytest.mark.usefixtures("camera")
@pytest.mark.parametrize(
    ("world", "observed", "height"), [("kitchen/complete", 60, 480), ("antmaze/umaze", 29, 480), ("ant/d4rl", 111, 480)]
)
def test_worlds_are_drawn_with_the_observations_of_the_data(world, observed, height) -> None:
    drawn = make_world(world, render_mode="rgb_array")
    first, _ = drawn.reset(seed=0)
    np.testing.assert_array_equal(first, make_world(world).reset(seed=0)[0])
    assert first.shape == (observed,)
    picture: Any = drawn.render()
    assert picture.shape == (height, height, 3)
    assert picture.std() > 10  # there is something to see
    drawn.close()


def test_frames_come_back_in_order(tmp_path) -> None:
    frames = [quantized(np.full((4, 4, 3), value, np.uint8)) for value in (0, 120, 250)]
    write_gif(tmp_path / "grey.gif", frames, 10)
    with Image.open(tmp_path / "grey.gif") as picture:
        shades = [int(np.asarray(frame.convert("L"))[0, 0]) for frame in ImageSequence.Iterator(picture)]
    assert shades == pytest.approx([0, 120, 250], abs=3)


def test_mistakes_are_said_in_a_sentence(tmp_path, monkeypatch) -> None:
    with pytest.raises(UserError, match="no world 'Nowhere-v0'"):
        film("Nowhere-v0")
    for world in ("minatar/breakout", "grid16smoothobs", "grid16smoothobs:lava=0.1"):
        with pytest.raises(UserError, match=f"{world} cannot be drawn; mazes"):
            film(world)
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(UserError, match=r"Blackjack-v1 cannot be drawn: pygame is not installed"):
        film("Blackjack-v1")
    with pytest.raises(UserError, match=r"written as \.gif"):
        write_gif(tmp_path / "x.mp4", [quantized(np.zeros((2, 2, 3), np.uint8))], 10)
    (tmp_path / "folder.gif").mkdir()
    with pytest.raises(UserError, match=r"folder\.gif is a folder"):
        write_gif(tmp_path / "folder.gif", [quantized(np.zeros((2, 2, 3), np.uint8))], 10)
    with pytest.raises(UserError, match="A seed is a whole number"):
        film("Hopper-v5", seed=-1)
    monkeypatch.setattr("dr3.collect.film.film", lambda *_, **__: pytest.fail("acted before the file was looked at"))
    assert invoke(["play", "drawers/open", "--out", str(tmp_path / "x.mp4")]) == 2


def test_a_machine_that_cannot_draw_is_said_in_a_sentence(monkeypatch) -> None:
    mujoco = pytest.importorskip("mujoco")

    def no_context(*_):
        raise mujoco.FatalError("gladLoadGL error")

    monkeypatch.setattr(mujoco, "MjrContext", no_context)
    with pytest.raises(UserError, match=r"MuJoCo cannot draw here: install EGL.*gladLoadGL error"):
        film("Hopper-v5")


@pytest.mark.usefixtures("camera")
def test_a_policy_that_means_nothing_is_said() -> None:
    with pytest.raises(UserError, match="RUN@STEP"):
        film("drawers/open", "runs/first")


def test_an_online_policy_is_played_from_its_file(tmp_path, monkeypatch) -> None:
    class Paid(Endless):
        """Pays the action."""

        observation_space = action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)

        def reset(self, **_):
            return np.ones(1, np.float32), {}

        def step(self, action):
            return np.ones(1, np.float32), float(action[0]), False, False, {}

    monkeypatch.setattr("dr3.collect.film.make_world", lambda *_, **__: Paid())
    monkeypatch.setattr("dr3.collect.film.LONGEST", 3)
    policy, path = HostPolicy(None, 1, -2.0, 2.0), tmp_path / "policy.npz"
    policy.layers = [(np.array([[0.25, 0]], np.float32), np.array([0.25, 0], np.float32))]
    write_policy(path, policy)
    assert film("Paid-v0", str(path)).total == pytest.approx(3 * 2 * np.tanh(0.5))
    policy.layers = [(np.zeros((5, 2), np.float32), np.zeros(2, np.float32))]
    write_policy(path, policy)
    with pytest.raises(UserError, match=r"maps 5 numbers to 1; this world has observations of the shape \(1,\)"):
        film("Paid-v0", str(path))
