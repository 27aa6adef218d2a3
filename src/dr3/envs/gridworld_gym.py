"""The gridworlds behind the Gymnasium interface."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.envs.gridworld import ACTIONS, Gridworld
from dr3.errors import UserError

try:
    import gymnasium
except ModuleNotFoundError as missing:
    raise UserError("Acting through Gymnasium needs the gymnasium package: pip install 'dr3[envs]'.") from missing


class GridworldEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Observes the current state's row of `world.observations`; `info["state"]` is its index.

    `terminated` is never true: the goal can be stayed at, and lava is a trap that goes on costing, not an end. An
    episode is `truncated` at the horizon, where a learner must bootstrap as everywhere else.
    """

    def __init__(self, world: Gridworld) -> None:
        self.world = world
        self.observation_space = gymnasium.spaces.Box(
            world.observations.min(axis=0), world.observations.max(axis=0), dtype=np.float32
        )
        self.action_space = gymnasium.spaces.Discrete(ACTIONS)
        self._state, self._steps = world.start, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self._state, self._steps = self.world.start, 0
        return self._observe()

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise UserError(f"An action of a gridworld is an integer from 0 to {ACTIONS - 1}, not {action!r}.")
        reward = float(self.world.rewards[self._state])  # of the state that is left
        self._state = self.world.step(self._state, int(action), self.np_random)
        self._steps += 1
        observation, info = self._observe()
        return observation, reward, False, self._steps >= self.world.horizon, info

    def _observe(self) -> tuple[NDArray[np.float32], dict[str, Any]]:
        return self.world.observations[self._state].copy(), {"state": self._state}
