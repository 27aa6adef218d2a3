from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

pytest.importorskip("mujoco")

from dr3.envs import make_world
from dr3.envs.drawers import IMAGE, DrawersEnv, register_drawers
from dr3.envs.drawers_tasks import DRAWERS, drawer_task
from dr3.envs.known import known_world
from dr3.errors import UserError

NOTHING = np.zeros(8)


@pytest.fixture
def make(camera):
    """Build a world, which draws what it shows."""
    made = []

    def build(task: str) -> DrawersEnv:
        made.append(DrawersEnv(task))
        return made[-1]

    yield build
    for env in made:
        env.close()


def action(**numbers: float) -> np.ndarray:
    names = ("x", "y", "z", "a", "b", "c", "fingers", "home")
    return np.array([numbers.get(name, 0.0) for name in names])


def steer(env: DrawersEnv, target, steps: int = 14) -> None:
    """Bring the grip near a point."""
    for _ in range(steps):
        env.step(np.append(np.clip(7 * (np.asarray(target) - env.scene.grip), -1, 1), np.zeros(5)))


def test_the_tasks_begin_as_the_paper_says(make) -> None:
    assert {name: task.steps for name, task in DRAWERS.items()} == {
        "drawers/blocked-by-drawer": 80,
        "drawers/blocked-by-object": 80,
        "drawers/closed": 50,
        "drawers/open": 50,
    }
    _, info = make("drawers/blocked-by-drawer").reset(seed=0)
    assert 0.45 <= info["top"] <= 0.6
    assert info["bottom"] == 0
    env = make("drawers/blocked-by-object")
    env.reset(seed=0)
    # The block stands before the lower handle, closer to it than the hand is wide.
    distance = env.scene.position("block")[0] - 0.022 - env.scene.handle("bottom")[0]
    assert 0.025 < distance < 0.045
    _, info = make("drawers/open").reset(seed=0)
    assert info["bottom"] == 1


@pytest.mark.usefixtures("camera")
def test_it_is_a_gymnasium_world_by_its_name() -> None:
    import gymnasium

    register_drawers()
    register_drawers()
    env = gymnasium.make("drawers/closed", disable_env_checker=True)
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


def test_an_episode_is_cut_and_never_ends(make) -> None:
    env = make("drawers/closed")
    env.reset(seed=0)
    ends = [env.step(NOTHING)[2:4] for _ in range(50)]
    assert ends == [(False, False)] * 49 + [(False, True)]


def test_the_seed_and_the_actions_are_everything(make) -> None:
    actions = np.random.default_rng(0).uniform(-1, 1, (12, 8))

    def play(env: DrawersEnv, seed: int) -> list[bytes]:
        first, _ = env.reset(seed=seed)
        return [first.tobytes()] + [env.step(one)[0].tobytes() for one in actions]

    env = make("drawers/blocked-by-object")
    once = play(env, 3)
    assert play(env, 4) != once
    assert play(env, 3) == once  # also after another episode
    assert play(make("drawers/blocked-by-object"), 3) == once


def test_a_full_action_moves_the_grip_by_its_share_of_the_scale(make) -> None:
    env = make("drawers/closed")
    env.reset(seed=0)
    before = env.scene.grip
    env.step(action(x=1.0))
    env.step(NOTHING)
    moved = env.scene.grip - before
    assert moved[0] == pytest.approx(0.3 * 0.2, abs=0.02)
    np.testing.assert_allclose(moved[1:], 0, atol=0.005)


def test_home_is_one_step_away(make) -> None:
    env = make("drawers/closed")
    env.reset(seed=0)
    home = env.scene.grip
    for _ in range(4):
        env.step(action(x=0.5, y=0.5, a=1.0, c=1.0))
    assert np.linalg.norm(env.scene.grip - home) > 0.05
    env.step(action(home=1.0))
    np.testing.assert_allclose(env.scene.grip, home, atol=0.01)


def test_fingers_open_and_close_beyond_half(make) -> None:
    env = make("drawers/closed")
    env.reset(seed=0)
    env.step(action(fingers=-0.4))
    assert env.scene.finger_opening() > 0.9
    openings = []
    for _ in range(3):  # a third of their way in each step
        env.step(action(fingers=-0.6))
        openings.append(env.scene.finger_opening())
    np.testing.assert_allclose(openings, [2 / 3, 1 / 3, 0], atol=0.12)
    for _ in range(3):
        env.step(action(fingers=0.6))
    assert env.scene.finger_opening() > 0.9


def test_the_state_says_where_things_are() -> None:
    env = DrawersEnv("drawers/blocked-by-drawer", observation="state")
    observation, info = env.reset(seed=0)
    assert observation.dtype == np.float32
    np.testing.assert_allclose(observation[:3], env.scene.grip)
    np.testing.assert_allclose(observation[3], 1)
    np.testing.assert_allclose(observation[7:10], env.scene.position("ball"))
    np.testing.assert_allclose(observation[10:13], env.scene.position("block"))
    np.testing.assert_allclose(observation[13:], [info["top"], 0], atol=1e-6)
    turned, *_ = env.step(action(b=0.5, fingers=-1))
    np.testing.assert_allclose(turned[4:7], [0, 0.5 * 0.3 * np.deg2rad(20), 0], atol=1e-6)
    assert turned[3] < 0.9
    assert known_world('drawers/closed{"observation": "state"}')


def test_a_grasped_ball_stays_grasped_and_pays_while_it_is_held_high(make) -> None:
    env = make("drawers/open")
    env.reset(seed=0)
    ball = env.scene.position("ball")
    steer(env, [*ball[:2], 0.15])
    steer(env, ball - [0, 0, 0.008])
    for _ in range(4):
        _, reward, *_ = env.step(action(fingers=-1.0))
    assert reward == 0  # grasped, but still in the drawer
    rewards = [env.step(action(z=0.4))[1] for _ in range(12)]
    assert rewards == sorted(rewards)  # once it pays, it goes on paying
    assert rewards[-1] == 1
    for _ in range(15):
        assert env.step(NOTHING)[1] == 1
    assert np.linalg.norm(env.scene.position("ball") - env.scene.grip) < 0.015
    for _ in range(3):
        env.step(action(fingers=1.0))
    for _ in range(3):
        _, reward, *_, info = env.step(NOTHING)
    assert reward == 0
    assert not info["success"]


@pytest.mark.parametrize("task", ["drawers/blocked-by-drawer", "drawers/open"])
def test_random_actions_break_nothing(make, task) -> None:
    env = make(task)
    env.reset(seed=0)
    random = np.random.default_rng(0)
    for _ in range(120):
        wild = random.uniform(-1, 1, 8)
        wild[7] = -1.0  # home would keep it out of trouble
        picture, *_, info = env.step(wild)
        data = env.scene.data
        assert np.isfinite(data.qpos).all()
        assert np.abs(data.qvel).max() < 50
        assert -0.02 < info["top"] < 1.02
        assert -0.02 < info["bottom"] < 1.02
    assert not data.warning.number.any()
    assert picture.shape == (IMAGE, IMAGE, 3)


def test_the_picture_shows_the_ball_only_in_an_open_drawer(make) -> None:
    def red(task: str) -> int:
        picture, _ = make(task).reset(seed=0)
        return int(((picture[..., 0] > 150) & (picture[..., 1] < 60) & (picture[..., 2] < 60)).sum())

    assert red("drawers/open") >= 4
    assert red("drawers/closed") == 0


def test_mistakes_are_said_in_a_sentence(make) -> None:
    with pytest.raises(UserError, match=r"no task 'drawers/shut'; there are drawers/blocked-by-drawer"):
        drawer_task("drawers/shut")
    env = make("drawers/closed")
    env.reset(seed=0)
    with pytest.raises(UserError, match="8 finite numbers"):
        env.step(np.zeros(7))
    with pytest.raises(UserError, match="'rgb_array'"):
        DrawersEnv("drawers/closed", render_mode="human")
    with pytest.raises(UserError, match="'picture' or as 'state', not as 'pixels'"):
        make_world('drawers/closed{"observation": "pixels"}')
