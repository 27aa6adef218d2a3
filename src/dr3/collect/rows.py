"""Steps of a world with continuous actions, column by column, while they are collected."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Rows(NamedTuple):
    """So many steps, or room for them; arrays of numpy, or on the device."""

    observations: Any  # (rows, size) float32
    actions: Any  # (rows, size) float32, in the world's range
    rewards: Any  # (rows,) float32
    next_observations: Any  # (rows, size) float32
    terminals: Any  # (rows,) bool: the world ended, not the time
    timeouts: Any  # (rows,) bool

    @classmethod
    def empty(cls, rows: int, observation: int, action: int) -> Rows:
        def floats(*shape: int) -> Floats:
            return np.zeros(shape, np.float32)

        flags = np.zeros((2, rows), np.bool_)
        wide = (rows, observation)
        return cls(floats(*wide), floats(rows, action), floats(rows), floats(*wide), flags[0], flags[1])
