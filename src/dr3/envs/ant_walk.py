"""Ant on an open floor, paid for the speed towards a waypoint: where the walker of AntMaze's data learns to walk."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.mujoco.ant_v5 import AntEnv
from numpy.typing import NDArray

from dr3.envs.ant_body import SEEN, as_in_d4rl, has_fallen, turn_back, view

LIMIT = 300
NEAR, FAR = 2.0, 6.0  # how far a new waypoint is
ARRIVED = 1.0
FAST = 1.0  # metres a second: what is faster earns no more, or it would run, and fall


class AntWalk(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """D4RL's ant goes from waypoint to waypoint. It is paid its speed towards the next, in metres a second, at most 1.

    Waypoints are 2 to 6 metres away, in any direction; at 1 metre there is another. An episode ends where the ant falls
    over. Observations and actions are those of `ant_body.view`.
    """

    def __init__(self, render_mode: str | None = None) -> None:
        options: dict[str, Any] = {"include_cfrc_ext_in_observation": False, "render_mode": render_mode}
        options["default_camera_config"] = {"type": 1, "trackbodyid": 1, "distance": 6.0}  # follows the torso
        self.ant: Any = AntEnv(**options, exclude_current_positions_from_observation=False)
        as_in_d4rl(self.ant.model)
        self.render_mode, self.metadata = render_mode, {"render_modes": ["rgb_array"], "render_fps": 10}
        self.action_space = self.ant.action_space
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (SEEN,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.ant.reset(seed=None if seed is None else int(self.np_random.integers(2**31)))
        heading = self.np_random.uniform(0, 2 * np.pi)
        place = self.ant.data.qpos.copy()
        place[3:7] = np.cos(heading / 2), 0, 0, np.sin(heading / 2)
        self.ant.set_state(place, self.ant.data.qvel)
        self.waypoint = self._another()
        return self._see(), {}

    def step(self, action: NDArray[np.floating]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        before = self.ant.data.qpos[:2].copy()
        self.ant.do_simulation(turn_back(np.asarray(action, np.float64), self.turns), self.ant.frame_skip)
        after = self.ant.data.qpos[:2]
        gained = np.linalg.norm(self.waypoint - before) - np.linalg.norm(self.waypoint - after)
        if np.linalg.norm(self.waypoint - after) <= ARRIVED:
            self.waypoint = self._another()
        return self._see(), float(min(gained / self.ant.dt, FAST)), has_fallen(self.ant.data.qpos[3:7]), False, {}

    def render(self) -> NDArray[np.uint8]:
        return self.ant.render()

    def close(self) -> None:
        self.ant.close()

    def _see(self) -> NDArray[np.float32]:
        place = self.ant.data.qpos
        body = np.concatenate([place[2:], self.ant.data.qvel])
        seen, self.turns = view(body, self.waypoint - place[:2])
        return seen

    def _another(self) -> NDArray[np.float64]:
        angle, distance = self.np_random.uniform(0, 2 * np.pi), self.np_random.uniform(NEAR, FAR)
        return self.ant.data.qpos[:2] + distance * np.array([np.cos(angle), np.sin(angle)])


def ant_walk(render_mode: str | None = None) -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(AntWalk(render_mode), LIMIT)
