"""FrankaKitchen as D4RL's policies see it."""

from __future__ import annotations

from typing import Any, Literal, cast

import gymnasium
import numpy as np
from gymnasium_robotics.envs.franka_kitchen.kitchen_env import (
    BONUS_THRESH,
    OBS_ELEMENT_GOALS,
    OBS_ELEMENT_INDICES,
    KitchenEnv,
)
from numpy.typing import NDArray

Demonstrations = Literal["complete", "partial", "mixed"]
KITCHEN_TASKS: dict[str, tuple[str, ...]] = {
    "complete": ("microwave", "kettle", "light switch", "slide cabinet"),
    "partial": ("microwave", "kettle", "light switch", "slide cabinet"),
    "mixed": ("microwave", "kettle", "bottom burner", "light switch"),
}
ROBOT, OBJECTS = slice(0, 9), slice(18, 39)  # positions among gymnasium-robotics' 59 numbers; the others are speeds


class KitchenWorld(gymnasium.Env[NDArray[np.float32], NDArray[np.floating]]):
    """Four things to do, 1 for each when it is done first; the episode ends with the last.

    Observations, 60 numbers: 9 joints, 21 positions of objects, and 30 of the goal (zero where nothing is to be done).
    """

    def __init__(self, kind: str, render_mode: str | None = None) -> None:
        self.tasks, self.render_mode = KITCHEN_TASKS[kind], render_mode
        self.simulator = cast(Any, KitchenEnv)(  # its unused methods are abstract
            tasks_to_complete=list(self.tasks), render_mode=render_mode
        )
        if render_mode is not None:  # without a graphics card shadows, mirrors and smoothing take most of the time
            model = self.simulator.model
            model.vis.quality.shadowsize = model.vis.quality.offsamples = 0
            model.mat_reflectance[:] = 0
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": self.simulator.metadata["render_fps"]}
        self.action_space = self.simulator.action_space
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (60,), np.float32)
        self.goal = np.zeros(30)
        for task in self.tasks:
            self.goal[OBS_ELEMENT_INDICES[task]] = OBS_ELEMENT_GOALS[task]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        seen, _ = self.simulator.reset(seed=seed)
        return self._observe(seen), {"success": False}

    def step(self, action: NDArray[np.floating]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        seen, reward, done, cut, _ = self.simulator.step(action)
        return self._observe(seen), float(reward), bool(done), bool(cut), {"success": bool(done)}

    def render(self) -> NDArray[np.uint8]:
        return self.simulator.render()

    def away(self, task: str) -> float:
        """How far an object is from where the task wants it, also one that is none of this world's four."""
        position = self.simulator.data.qpos[OBS_ELEMENT_INDICES[task]]
        return float(np.linalg.norm(position - OBS_ELEMENT_GOALS[task]))

    def done(self, task: str) -> bool:
        """Whether it is near enough to count as done."""
        return self.away(task) < BONUS_THRESH

    def close(self) -> None:
        self.simulator.close()

    def _observe(self, seen: dict[str, Any]) -> NDArray[np.float32]:
        numbers = seen["observation"]
        return np.concatenate([numbers[ROBOT], numbers[OBJECTS], self.goal]).astype(np.float32)


def kitchen_world(kind: str, limit: int, render_mode: str | None = None) -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(KitchenWorld(kind, render_mode), limit)
