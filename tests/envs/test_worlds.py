from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from dr3.envs import MAZES, TASKS, WORLDS, make_world
from dr3.errors import UserError

pytest.importorskip("mujoco")
robotics = pytest.mark.skipif("not __import__('importlib').util.find_spec('gymnasium_robotics')")


@pytest.mark.parametrize(
    ("name", "observed", "acted"),
    [("Hopper-v5", 11, 3), ("Walker2d-v5", 17, 6), ("HalfCheetah-v5", 17, 6), ("Ant-v5", 105, 8), ("ant/d4rl", 111, 8)],
)
def test_bodies_have_the_sizes_of_the_files(name, observed, acted):
    world = make_world(name)
    first, _ = world.reset(seed=3)
    assert first.shape == world.observation_space.shape == (observed,)
    assert first.dtype == np.float32
    assert world.action_space.shape == (acted,)
    np.testing.assert_array_equal(world.reset(seed=3)[0], first)


def test_every_task_has_a_world():
    assert {task.world for task in TASKS.values()} <= set(WORLDS)


def test_the_ways_through_the_mazes():
    assert MAZES["umaze"].distances(MAZES["umaze"].goal)[MAZES["umaze"].start] == 6
    for maze in MAZES.values():
        assert set(maze.distances(maze.goal)) == set(maze.free)  # every free cell can be reached
        assert len({len(row) for row in maze.layout}) == 1
    assert MAZES["medium"].neighbours((1, 1)) == [(2, 1), (1, 2)]


@robotics
def test_a_point_pushed_along_the_way_reaches_the_goal():
    """The U: right past the corner, down, left; coordinates grow with the column and the row, from the start."""
    world = make_world("pointmaze/umaze")
    seen, info = world.reset(seed=0)
    assert not info["success"]
    assert np.abs(seen[:2]).max() <= 0.25
    for target in ([2, 0], [2, 2], [0, 2]):
        while np.abs(seen[:2] - target).max() > 0.3:
            seen, reward, ended, cut, info = world.step(np.clip(5 * (target - seen[:2]) - 2 * seen[2:], -1, 1))
            assert not cut
            assert reward == float(ended) == float(info["success"]) == float(np.linalg.norm(seen[:2] - [0, 2]) <= 0.5)
            if ended:
                break
    assert ended
    # Walls hold: straight to the goal there is none.
    seen, _ = world.reset(seed=0)
    for _ in range(100):
        seen, *_ = world.step(np.array([-0.2, 1.0]))
    assert seen[1] < 0.5
    seen, _ = world.reset(seed=0, options={"start": (3, 3)})
    assert np.abs(seen[:2] - [2, 2]).max() <= 0.25


@robotics
def test_an_ant_starts_at_the_origin_and_its_goal_is_in_the_far_corner():
    world = make_world("antmaze/large-play")
    seen, _ = world.reset(seed=1)
    assert seen.shape == (29,)
    assert np.abs(seen[:2]).max() <= 0.1
    assert seen[2] == pytest.approx(0.75, abs=0.11)
    inner: Any = world.unwrapped
    before = inner.simulator.ant_env.data.time
    world.step(np.ones(8, np.float32))
    assert inner.simulator.ant_env.data.time - before == pytest.approx(0.1)  # seconds between actions, as in D4RL
    np.testing.assert_allclose(inner.simulator.ant_env.data.qfrc_actuator[6:], 30.0)
    cell = 4.0 * np.array([8, 6])
    goals = []
    for seed in range(3):
        world.reset(seed=seed)
        goals.append(inner.goal - cell)
    assert len({tuple(goal) for goal in goals}) == 3
    assert np.min(goals) >= 0
    assert np.max(goals) <= 1.5


@robotics
def test_the_kitchen_shows_positions_and_the_goal():
    world = make_world("kitchen/mixed")
    seen, _ = world.reset(seed=0)
    assert seen.shape == (60,)
    goal = seen[30:]
    np.testing.assert_allclose(goal[[11, 12, 17, 18, 22]], [-0.88, -0.01, -0.69, -0.05, -0.75], rtol=1e-6)
    assert not goal[:11].any()
    assert not goal[19:22].any()  # the cabinets are no task of this one
    np.testing.assert_allclose(seen[23:26], [-0.269, 0.35, 1.619], atol=0.01)  # where the kettle stands
    kitchen: Any = world.unwrapped
    kitchen.simulator.data.qpos[22] = -0.75  # the microwave stands open
    _, reward, ended, _, info = world.step(np.zeros(9))
    assert (reward, ended, info["success"]) == (1.0, False, False)
    assert world.step(np.zeros(9))[1] == 0  # paid once


def test_what_cannot_be_made_is_said():
    with pytest.raises(UserError, match=r"no world 'Hoper-v5'.*the nearest names: Hopper-v5(, [\w-]+){4}\.$"):
        make_world("Hoper-v5")
    with pytest.raises(UserError, match=r"no world 'zzzz'.*docs/worlds\.md"):
        make_world("zzzz")
    with pytest.raises(UserError, match="must be a JSON object"):
        make_world("CartPole-v1{x")


@pytest.mark.parametrize(
    ("module", "name", "extra"),
    [("gymnasium", "CartPole-v1", "envs"), ("gymnasium_robotics", "antmaze/umaze", "robotics")],
)
def test_what_to_install_is_said(monkeypatch, module, name, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=rf"pip install 'dr3\[{extra}\]'"):
        make_world(name)
