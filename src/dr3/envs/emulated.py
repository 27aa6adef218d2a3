"""Worlds that run on the host and show themselves frame by frame: an emulator, several copies of it side by side."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Moves(NamedTuple):
    """What one action of each copy led to."""

    frames: NDArray[np.uint8]  # (copies, height, width)
    rewards: NDArray[np.floating[Any]]  # (copies,) raw
    terminals: NDArray[np.bool_]  # (copies,) the game is over
    timeouts: NDArray[np.bool_]  # (copies,) the clock cut it


class Games(Protocol):
    """Copies of a world that are played at once. A copy that has come to its end must be reset before it counts again.

    All chance of an episode follows from the seed of its reset, so the same seed and actions give the same frames.
    """

    def reset(self, seeds: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Every copy from its start: the first frames."""
        ...

    def step(self, actions: NDArray[np.integer]) -> Moves: ...

    def close(self) -> None: ...


class EmulatedWorld(Protocol):
    """A world by name. An observation is the last `stack` frames, oldest first, blank before the first one."""

    @property
    def name(self) -> str: ...
    @property
    def frame_shape(self) -> tuple[int, int]: ...
    @property
    def stack(self) -> int: ...
    @property
    def actions(self) -> int: ...

    def open(self, copies: int) -> Games: ...
