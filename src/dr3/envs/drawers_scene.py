"""The scene of the drawers in MuJoCo: its bodies by name, the arm's inverse kinematics, and pictures of it."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.envs.drawers_camera import Camera, mujoco

ARM_JOINTS = ("waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate")
FINGERS = ("left_finger", "right_finger")
FINGER_OPEN = 0.036  # m, for each finger
TRAVEL = 0.16  # m, of a drawer

# Columns are the hand's axes in the world: the fingers (x) point down and open (y) along the world's y.
POINTING_DOWN = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
NEUTRAL = np.array([0.06, 0.20, 0.26])  # where the grip is at home
ELBOW_UP = np.array([0.0, -0.6, 0.5, 0.0, 1.5, 1.57])  # from where the home pose is solved


class Scene:
    """One copy of the scene. Positions are in metres and in the world's frame, see drawers.xml."""

    def __init__(self) -> None:
        text = (resources.files("dr3.envs") / "drawers.xml").read_text()
        self.model: Any = mujoco.MjModel.from_xml_string(text)
        self.data: Any = mujoco.MjData(self.model)
        self._try: Any = mujoco.MjData(self.model)  # for inverse kinematics
        self._joints = {name: self.model.joint(name).qposadr[0] for name in (*ARM_JOINTS, *FINGERS, "top", "bottom")}
        self._arm = np.array([self._joints[name] for name in ARM_JOINTS])
        self._arm_speeds = np.array([self.model.joint(name).dofadr[0] for name in ARM_JOINTS])
        self._limits = np.array([self.model.joint(name).range for name in ARM_JOINTS]).T
        self._grip = self.model.site("grip").id
        self._things = {name: self.model.joint(name) for name in ("ball", "block")}
        self._cameras: dict[int, Camera] = {}
        self._try.qpos[self._arm] = ELBOW_UP
        self.home = self._solve(NEUTRAL, POINTING_DOWN, iterations=200)

    def reset(self, *, top: float, bottom: float, ball: NDArray[Any], block: NDArray[Any]) -> None:
        """The arm at home with an open hand, the drawers so far open (0 … 1), the things there; all at rest."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[self._arm] = self.data.ctrl[: len(ARM_JOINTS)] = self.home
        self.data.qpos[[self._joints[name] for name in FINGERS]] = FINGER_OPEN
        self.data.ctrl[len(ARM_JOINTS) :] = FINGER_OPEN
        self.data.qpos[[self._joints["top"], self._joints["bottom"]]] = TRAVEL * np.array([top, bottom])
        for name, position in (("ball", ball), ("block", block)):
            start = self._things[name].qposadr[0]
            self.data.qpos[start : start + 3] = position
        mujoco.mj_forward(self.model, self.data)

    # --- What is where ---

    @property
    def grip(self) -> NDArray[np.float64]:
        """The point between the fingertips: (3,)."""
        return self.data.site_xpos[self._grip].copy()

    def position(self, thing: str) -> NDArray[np.float64]:
        """The centre of "ball" or "block": (3,)."""
        start = self._things[thing].qposadr[0]
        return self.data.qpos[start : start + 3].copy()

    def openness(self, drawer: str) -> float:
        """Of "top" or "bottom", as a share of its travel."""
        return float(self.data.qpos[self._joints[drawer]]) / TRAVEL

    def handle(self, drawer: str) -> NDArray[np.float64]:
        """The middle of the gap behind the handle's bar: (3,)."""
        return self.data.site(f"{drawer}_handle").xpos.copy()

    def finger_opening(self) -> float:
        """Between the fingers, as a share of their way."""
        return float(self.data.qpos[self._joints["left_finger"]]) / FINGER_OPEN

    # --- What moves it ---

    def solve(self, position: NDArray[Any], orientation: NDArray[Any]) -> NDArray[np.float64]:
        """Joint angles that bring the grip there, near those that it has: (6,)."""
        self._try.qpos[:] = self.data.qpos
        return self._solve(position, orientation, iterations=5)

    def _solve(self, position: NDArray[Any], orientation: NDArray[Any], *, iterations: int) -> NDArray[np.float64]:
        """Damped least squares; what cannot be reached is approached."""
        tried = self._try
        moving, turning = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        for _ in range(iterations):
            mujoco.mj_kinematics(self.model, tried)
            mujoco.mj_comPos(self.model, tried)
            mujoco.mj_jacSite(self.model, tried, moving, turning, self._grip)
            now = tried.site_xmat[self._grip].reshape(3, 3)
            twist = orientation @ now.T
            turn = 0.5 * np.array([twist[2, 1] - twist[1, 2], twist[0, 2] - twist[2, 0], twist[1, 0] - twist[0, 1]])
            error = np.concatenate([position - tried.site_xpos[self._grip], 0.3 * turn])
            jacobian = np.vstack([moving, 0.3 * turning])[:, self._arm_speeds]
            change = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-4 * np.eye(6), error)
            tried.qpos[self._arm] = np.clip(tried.qpos[self._arm] + np.clip(change, -0.3, 0.3), *self._limits)
            if np.abs(error).max() < 1e-4:
                break
        return tried.qpos[self._arm].copy()

    def move_fingers(self, way: float) -> None:
        """Ask them to open (or, below 0, to close) by this share of their whole way."""
        asked = self.data.ctrl[len(ARM_JOINTS) :]
        asked[:] = np.clip(asked + way * FINGER_OPEN, 0.0, FINGER_OPEN)

    def move(self, joints: NDArray[Any], *, substeps: int, pieces: int) -> None:
        """Lead the arm to these joint angles in equal pieces, over so many substeps of the physics each."""
        start = self.data.ctrl[: len(ARM_JOINTS)].copy()
        for piece in range(1, pieces + 1):
            self.data.ctrl[: len(ARM_JOINTS)] = start + (joints - start) * piece / pieces
            mujoco.mj_step(self.model, self.data, nstep=substeps)
        mujoco.mj_kinematics(self.model, self.data)

    # --- What it looks like ---

    def picture(self, size: int) -> NDArray[np.uint8]:
        """What the camera sees: (size, size, 3)."""
        if size not in self._cameras:
            self._cameras[size] = Camera(self.model, "front", size)
        return self._cameras[size].picture(self.data)

    def close(self) -> None:
        for camera in self._cameras.values():
            camera.close()
        self._cameras.clear()
