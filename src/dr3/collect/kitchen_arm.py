"""The kitchen's arm by inverse kinematics: from where the hand should be to the velocities of nine joints."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

mujoco: Any = import_module("mujoco")  # most of it is compiled, and unknown to type checkers
Floats = NDArray[np.float64]

JOINTS = 7
DAMPING = 0.05  # of the least squares: near a singular pose it trades exactness for bounded speeds
TURN = 0.5  # m a radian: how much a turned hand counts beside one in the wrong place
REST = 0.02  # how fast what the hand leaves free drifts to the posture of rest
POSTURE = np.array([0.15, -1.4, 1.84, -2.2, 0.26, 0.71, 1.6])  # the start, a little inside of the joints' limits
GAIN = 2.5  # a joint moves about half as far in a step as it is asked to
MARGIN = 0.02  # rad to a joint's limit, within which it is not moved on
LEVEL = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # points to the wall, fingers side by side


class Arm:
    """What a script sees of the kitchen, and how it moves the hand in it."""

    def __init__(self, world: Any) -> None:
        """`world` is a KitchenWorld, already reset."""
        self.world = world
        robot = world.simulator.robot_env
        self.model, self.data = robot.model, robot.data
        self.site = self.model.site("end_effector").id
        self.reach = robot.dt * robot.act_rng[:JOINTS]  # rad in a step, of an action of 1

    @property
    def hand(self) -> Floats:
        """Where the hand is: between the fingers, 4 cm behind their tips."""
        return self.data.site_xpos[self.site].copy()

    @property
    def twist(self) -> float:
        """How far the hand is turned about the way it points, clockwise as seen from behind it."""
        turned = self._rotation() @ LEVEL.T
        return float(np.arctan2(turned[0, 2], turned[0, 0]))

    def place(self, thing: str) -> Floats:
        """Where a site of the kitchen is."""
        return self.data.site(thing).xpos.copy()

    def towards(self, target: Floats, *, fingers: float, speed: float, twist: float = 0.0) -> Floats:
        """The action that brings the hand nearer to `target`, at most `speed` metres a step; it stays level.

        Args:
            target: A place in the world, (3,).
            fingers: From -1, closing, to 1, opening.
            speed: In metres a step.
            twist: Turned about the way it points, as `self.twist`.
        """
        way = np.asarray(target, np.float64) - self.hand
        way *= speed / max(speed, float(np.linalg.norm(way)))
        wanted, now = _about_y(twist) @ LEVEL, self._rotation()
        turn = 0.5 * np.cross(now.T, wanted.T).sum(axis=0)
        moved, turned = np.zeros((2, 3, self.model.nv))
        mujoco.mj_jacSite(self.model, self.data, moved, turned, self.site)
        jacobian = np.concatenate([moved, TURN * turned])[:, :JOINTS]
        joints = self._solve(jacobian, np.concatenate([way, TURN * turn]))
        action = GAIN * joints / self.reach
        return np.append(action / max(1.0, np.abs(action).max()), [fingers, fingers])

    def home(self) -> tuple[Floats, float]:
        """The action that brings the joints nearer to the posture of rest, and how far the farthest of them is."""
        way = POSTURE - self.data.qpos[:JOINTS]
        action = GAIN * way / self.reach
        farthest = float(np.abs(way).max())
        return np.append(action / max(1.0, np.abs(action).max()), [1.0, 1.0]), farthest

    def _solve(self, jacobian: Floats, error: Floats) -> Floats:
        """Damped least squares, again without the joints that it would press against their limits."""
        angles = self.data.qpos[:JOINTS]
        low, high = self.model.jnt_range[:JOINTS].T
        free = np.ones(JOINTS, np.bool_)
        while True:
            kept = jacobian * free
            inverse = kept.T @ np.linalg.inv(kept @ kept.T + DAMPING**2 * np.eye(len(error)))
            idle = np.eye(JOINTS) - inverse @ kept
            joints = free * (inverse @ error + idle @ (REST * (POSTURE - angles) * free))
            stuck = ((angles < low + MARGIN) & (joints < 0)) | ((angles > high - MARGIN) & (joints > 0))
            if not stuck.any():
                return joints
            free &= ~stuck

    def _rotation(self) -> Floats:
        return self.data.site_xmat[self.site].reshape(3, 3)


def _about_y(angle: float) -> Floats:
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]])
