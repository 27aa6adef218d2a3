"""D4RL's ant, and how it looks from where it wants to go. Its four sides are equal: turned, they are one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SEEN = 28  # numbers of a view
MOTORS = 8
UPRIGHT = 0.3  # the cosine of the largest tilt, about 70 degrees
# How the ankles' axes are signed in the model: with these a bend of 30 to 70 degrees is down, in every leg.
_DOWN = np.array([1.0, -1.0, -1.0, 1.0])
_LEG_OF_MOTORS = np.array([3, 0, 1, 2])  # the leg that each pair of motors moves


def as_in_d4rl(model: Any) -> None:
    """D4RL's ant is slower and weaker than Gymnasium's: 0.1 seconds between actions, and at most 30 units of torque."""
    model.opt.timestep = 0.02  # of which there are 5 in a step; Gymnasium's ant has 0.01
    model.actuator_gear[:, 0] = 30.0  # Gymnasium's: 150
    model.geom_solimp[:, :3] = 0.8, 0.8, 0.01  # how soft contacts are


class View(NamedTuple):
    """What the ant sees, turned so that the way lies before it (at most 45 degrees to a side)."""

    seen: NDArray[np.float32]  # (SEEN,)
    turns: int  # quarter turns of the body that brought it there


def view(body: NDArray[np.floating], way: NDArray[np.floating]) -> View:
    """The 27 numbers of the ant (height, orientation, joints, speeds) as seen on the way to a waypoint.

    A quarter turn about its axis leaves the ant the same, with other names for its legs. So it is turned until the
    way lies in front, and a policy is spared three quarters of what there is to learn. What is seen: the height (1),
    which way is up (3), how fast the torso moves and turns (3 + 3), hips and ankles (8), their speeds (8), and the
    direction of the way, of length 1 where the ant stands upright (2). Nothing says where in the world it is.

    Args:
        body: z, the quaternion, 8 joints, 3 + 3 + 8 speeds, as Gymnasium's ant gives them.
        way: From the ant to the waypoint, x and y.
    """
    axes = rotation(body[1:5])  # columns: the body's axes in the world
    direction = way / max(float(np.hypot(way[0], way[1])), 1e-9)
    ahead = direction @ axes[:2]  # (3,) in the body's axes
    turns = round(float(np.arctan2(ahead[1], ahead[0])) / (np.pi / 2)) % 4
    cosine, sine = ((1, 0), (0, 1), (-1, 0), (0, -1))[turns]
    turned = axes @ np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]])
    joints, speeds = body[5:13].reshape(4, 2).copy(), body[19:27].reshape(4, 2).copy()
    joints[:, 1] *= _DOWN
    speeds[:, 1] *= _DOWN
    local = np.array([cosine * body[16] + sine * body[17], cosine * body[17] - sine * body[16], body[18]])
    parts = (
        body[:1],
        turned[2],  # the world's "up" in the turned body's axes
        body[13:16] @ turned,  # MuJoCo has a free body's speed in the world's axes,
        local,  # and the speed of its turning in its own
        np.roll(joints, -turns, axis=0).ravel(),
        np.roll(speeds, -turns, axis=0).ravel(),
        direction @ turned[:2, :2],
    )
    return View(np.concatenate(parts).astype(np.float32), turns)


def turn_back(action: NDArray[np.floating], turns: int) -> NDArray[np.floating]:
    """Torques for (hip, ankle) of four legs in the order of a view, as the ant's motors want them."""
    legs = np.roll(action.reshape(4, 2), turns, axis=0)
    torques = np.stack([legs[:, 0], legs[:, 1] * _DOWN], axis=1)
    return torques[_LEG_OF_MOTORS].ravel()


def has_fallen(quaternion: NDArray[np.floating]) -> bool:
    """Whether the torso lies on its side or its back, from where the ant cannot get up again."""
    return bool(rotation(quaternion)[2, 2] < UPRIGHT)


def rotation(quaternion: NDArray[np.floating]) -> NDArray[np.float64]:
    """The rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = (float(number) for number in quaternion / np.linalg.norm(quaternion))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
