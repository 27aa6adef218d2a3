"""AntMaze and PointMaze with D4RL's rules, on gymnasium-robotics' simulators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium_robotics.envs.maze.ant_maze_v5 import AntMazeEnv
from gymnasium_robotics.envs.maze.point_maze import PointMazeEnv
from numpy.typing import NDArray

from dr3.envs.ant_body import as_in_d4rl
from dr3.envs.mazes import MAZES, Cell, Maze

SUCCESS_RADIUS = 0.5
POINT_LIMITS = {"umaze": 300, "medium": 600, "large": 800}  # gymnasium-robotics' own
ANT_NOISE = 0.1  # of the ant's joints and their speeds at a reset, as in D4RL
POINT_NOISE = 0.25  # of the point's place in its cell


class MazeWorld(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """From the start to one goal: 1 within 0.5 of it, where the episode ends, and 0 everywhere else.

    Observations are x, y and then the body: the ant's 27 other coordinates and speeds, the point's 2 speeds. The goal
    is not in them: it is always in the same cell. The origin is the centre of the start's cell, x grows with the
    column and y with the row of the map, as in D4RL's files. `reset(options={"start": (row, column)})` begins in
    another cell.
    """

    def __init__(self, maze: Maze, body: str, render_mode: str | None = None) -> None:
        self.maze, self.body, self.render_mode = maze, body, render_mode
        # gymnasium-robotics lets y fall with the row: upside down, it grows, and files of D4RL fit.
        upside_down = [[int(letter == "#") for letter in row] for row in reversed(maze.layout)]
        options: dict[str, Any] = {"maze_map": upside_down, "continuing_task": False, "render_mode": render_mode}
        if body == "ant":
            self.simulator: Any = AntMazeEnv(**options, include_cfrc_ext_in_observation=False)
            self.simulator.ant_env._reset_noise_scale = ANT_NOISE  # no argument reaches it
            as_in_d4rl(self.simulator.ant_env.model)
            self.simulator.ant_env.mujoco_renderer.default_cam_config = _from_above(maze)  # else where it starts
        else:
            self.simulator = PointMazeEnv(**options)
        self.simulator.position_noise_range = 0.0  # the noise is ours
        Path(self.simulator.tmp_xml_file_path).unlink()  # made for MuJoCo to read, and left behind
        self.scale = float(self.simulator.maze.maze_size_scaling)
        self.origin = self._place_in_simulator(maze.start)
        self.goal = self.place(maze.goal)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 10 if body == "ant" else 50}
        self.action_space = self.simulator.action_space
        observed = 29 if body == "ant" else 4
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (observed,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        start = self._in_simulator((options or {}).get("start", self.maze.start))
        inner = None if seed is None else int(self.np_random.integers(2**31))
        cells = {"reset_cell": np.array(start), "goal_cell": np.array(self._in_simulator(self.maze.goal))}
        seen, _ = self.simulator.reset(seed=inner, options=cells)
        self.goal = self.place(self.maze.goal)
        if self.body == "ant":  # D4RL's goal lies anywhere in a part of its cell
            share = self.np_random.uniform(0, 0.25, 2) + self.np_random.uniform(0, 0.125, 2)
            self.goal = self.goal + self.scale * share
        else:
            seen = self._move_point(self.np_random.uniform(-POINT_NOISE, POINT_NOISE, 2))
        observation = self._observe(seen)
        return observation, {"success": self._reached(observation)}

    def step(self, action: NDArray[np.floating]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        observation = self._observe(self.simulator.step(action)[0])
        reached = self._reached(observation)
        return observation, float(reached), reached, False, {"success": reached}

    def render(self) -> NDArray[np.uint8]:
        return self.simulator.render()

    def close(self) -> None:
        self.simulator.close()

    def place(self, cell: Cell) -> NDArray[np.float64]:
        """The centre of a cell, in the coordinates of the observations."""
        return self._place_in_simulator(cell) - self.origin

    def _observe(self, seen: dict[str, NDArray[np.float64]]) -> NDArray[np.float32]:
        body = seen["observation"] if self.body == "ant" else seen["observation"][2:]
        return np.concatenate([seen["achieved_goal"] - self.origin, body]).astype(np.float32)

    def _reached(self, observation: NDArray[np.float32]) -> bool:
        return bool(np.linalg.norm(observation[:2] - self.goal) <= SUCCESS_RADIUS)

    def _move_point(self, by: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        point = self.simulator.point_env
        point.set_state(point.data.qpos + by, point.data.qvel)
        place = point.data.qpos.copy()
        return {"observation": np.concatenate([place, point.data.qvel]), "achieved_goal": place}

    def _in_simulator(self, cell: Cell) -> Cell:
        return len(self.maze.layout) - 1 - cell[0], cell[1]

    def _place_in_simulator(self, cell: Cell) -> NDArray[np.float64]:
        return self.simulator.maze.cell_rowcol_to_xy(np.array(self._in_simulator(cell)))


def _from_above(maze: Maze) -> dict[str, Any]:
    """A camera that sees all of the map; its middle is the simulator's origin."""
    widest = 4.0 * max(len(maze.layout), len(maze.layout[0]))
    return {"lookat": np.zeros(3), "distance": 1.25 * widest, "elevation": -75.0, "azimuth": 90.0}


def maze_world(name: str, limit: int, render_mode: str | None = None) -> gymnasium.Env:
    """`antmaze/medium-play`, `pointmaze/large`: the kind of data (play, diverse) makes no difference to the world."""
    body, _, layout = name.partition("/")
    world = MazeWorld(MAZES[layout.split("-")[0]], body.removesuffix("maze"), render_mode)
    return gymnasium.wrappers.TimeLimit(world, limit)
