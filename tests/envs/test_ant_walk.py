"""The ant that learns to walk: its four sides are one, wherever in the world it stands and whichever way it looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dr3.envs import make_world
from dr3.envs.ant_body import MOTORS, SEEN, has_fallen, rotation, turn_back, view

pytest.importorskip("mujoco")

DOWN = np.array([1, -1, -1, 1])


@pytest.fixture(scope="module")
def ant():
    world = make_world("ant/waypoints")
    world.reset(seed=0)
    inner: Any = world.unwrapped
    yield inner.ant
    world.close()


def product(one, other):
    """Of two quaternions: first `other`, then `one`."""
    w, x, y, z = one
    a, b, c, d = other
    return np.array(
        [
            w * a - x * b - y * c - z * d,
            w * b + x * a + y * d - z * c,
            w * c - x * d + y * a + z * b,
            w * d + x * c - y * b + z * a,
        ]
    )


def about_z(angle):
    return np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])


def turned_body(place, speed, quarters):
    """The same pose with the torso turned by quarters of a turn about its own axis and the legs renamed."""
    place, speed = place.copy(), speed.copy()
    place[3:7] = product(place[3:7], about_z(quarters * np.pi / 2))
    speed[3:6] = rotation(about_z(quarters * np.pi / 2)).T @ speed[3:6]
    for joints in (place[7:], speed[6:]):
        legs = joints.reshape(4, 2) * np.stack([np.ones(4), DOWN], axis=1)
        joints[:] = (np.roll(legs, -quarters, axis=0) * np.stack([np.ones(4), DOWN], axis=1)).ravel()
    return place, speed


def turned_world(place, speed, angle):
    place, speed = place.copy(), speed.copy()
    turn = rotation(about_z(angle))
    place[:3], speed[:3] = turn @ place[:3] + [3, -7, 0], turn @ speed[:3]
    place[3:7] = product(about_z(angle), place[3:7])
    return place, speed


def follow(ant, place, speed, way, steps=8):
    """What is seen while the same actions, as the view has them, are done."""
    random = np.random.default_rng(1)
    ant.set_state(place, speed)
    seen = []
    for _ in range(steps):
        now = view(np.concatenate([ant.data.qpos[2:], ant.data.qvel]), way)
        seen.append(now.seen)
        ant.do_simulation(turn_back(random.uniform(-1, 1, MOTORS), now.turns), ant.frame_skip)
    return np.array(seen)


@pytest.fixture(scope="module")
def begun(ant):
    ant.reset(seed=3)
    for _ in range(5):
        ant.step(np.random.default_rng(2).uniform(-1, 1, MOTORS))
    return ant.data.qpos.copy(), ant.data.qvel.copy()


WAY = np.array([2.0, 1.0])


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_body_turned_by_quarters_is_the_same_ant(ant, begun, quarters):
    expected = follow(ant, *begun, WAY)
    np.testing.assert_allclose(follow(ant, *turned_body(*begun, quarters), WAY), expected, atol=1e-5)


@pytest.mark.parametrize("angle", [0.3, 2.0, -2.5])
def test_the_view_does_not_know_where_in_the_world_it_is(ant, begun, angle):
    expected = follow(ant, *begun, WAY)
    way = (rotation(about_z(angle)) @ [*WAY, 0])[:2]
    np.testing.assert_allclose(follow(ant, *turned_world(*begun, angle), way), expected, atol=1e-4)


def test_a_view_by_hand():
    """Upright, looking along y, 1 m/s along x; the way goes along -x: to its left, so a quarter turn is made."""
    body = np.zeros(27)
    body[0], body[1:5], body[13], body[18] = 0.75, about_z(np.pi / 2), 1.0, 0.5
    body[5:13] = [0.1, 1, 0.2, -2, 0.3, -3, 0.4, 4]  # legs 1 to 4: hip, ankle
    seen, turns = view(body, np.array([-3.0, 0.0]))
    assert (len(seen), turns) == (SEEN, 1)
    np.testing.assert_allclose(seen[:7], [0.75, 0, 0, 1, -1, 0, 0], atol=1e-7)  # backwards, now that -x is in front
    np.testing.assert_allclose(seen[7:10], [0, 0, 0.5], atol=1e-7)
    np.testing.assert_allclose(seen[10:18], [0.2, 2, 0.3, 3, 0.4, 4, 0.1, 1], rtol=1e-6)
    np.testing.assert_allclose(seen[26:], [1, 0], atol=1e-7)
    torques = turn_back(np.array([0.2, 2, 0.3, 3, 0.4, 4, 0.1, 1]), turns)
    np.testing.assert_allclose(torques, [0.4, 4, 0.1, 1, 0.2, -2, 0.3, -3])  # motors of legs 4, 1, 2, 3
    assert not has_fallen(body[1:5])
    assert has_fallen(np.array([0.0, 1, 0, 0]))  # on its back


def test_the_reward_is_the_speed_towards_the_waypoint():
    world = make_world("ant/waypoints")
    inner: Any = world.unwrapped
    seen, _ = world.reset(seed=5)
    np.testing.assert_array_equal(world.reset(seed=5)[0], seen)
    assert seen.shape == world.observation_space.shape == (SEEN,)
    for _ in range(20):
        before = np.linalg.norm(inner.waypoint - inner.ant.data.qpos[:2])
        waypoint = inner.waypoint
        _, reward, ended, _, _ = world.step(world.action_space.sample())
        after = np.linalg.norm(waypoint - inner.ant.data.qpos[:2])
        assert reward == pytest.approx((before - after) / 0.1)
        assert not ended
    inner.waypoint = inner.ant.data.qpos[:2] + np.array([0.5, 0])
    world.step(np.zeros(8))
    assert 1.9 < np.linalg.norm(inner.waypoint - inner.ant.data.qpos[:2]) < 6.1  # it has arrived: another one
    place = inner.ant.data.qpos.copy()
    place[2:7] = 0.5, 0, 1, 0, 0
    inner.ant.set_state(place, inner.ant.data.qvel)
    assert world.step(np.zeros(8))[2]  # on its back
    world.close()
