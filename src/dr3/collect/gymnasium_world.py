"""A Gymnasium world that can be taken up again at the start of any episode, and its steps."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dr3.collect.host_policy import HostPolicy
from dr3.data import ContinuousActions, Transitions, assemble
from dr3.envs.worlds import make_world
from dr3.errors import UserError

Floats = NDArray[np.float32]


class Steps(NamedTuple):
    """So many steps, or room for them; arrays of numpy, or on the device."""

    observations: Any  # (rows, size) float32
    actions: Any  # (rows, size) float32, in the world's range
    rewards: Any  # (rows,) float32
    next_observations: Any  # (rows, size) float32
    terminals: Any  # (rows,) bool: the world ended, not the time
    timeouts: Any  # (rows,) bool

    @classmethod
    def empty(cls, rows: int, observation: int, action: int) -> Steps:
        def floats(*shape: int) -> Floats:
            return np.zeros(shape, np.float32)

        flags = np.zeros((2, rows), np.bool_)
        wide = (rows, observation)
        return cls(floats(*wide), floats(rows, action), floats(rows), floats(*wide), flags[0], flags[1])


class GymnasiumWorld:
    """One copy of a world with continuous actions. An episode follows from (seed, its number) and the actions in it."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
        self.env = make_world(name)
        self.actions = _actions(name, self.env.action_space)
        shape = self.env.observation_space.shape
        if shape is None or len(shape) != 1:
            raise UserError(f"{name} has observations of the shape {shape}; SAC here needs vectors.")
        self.size = shape[0]
        self.observation: Floats | None = None  # None between two episodes

    def act(self, policy: HostPolicy, rows: Steps, *, episode: int, step: int, limit: int) -> tuple[int, bool]:
        """Fill up to `limit` rows, to the end of the episode at most: how many, and whether it has ended.

        The policy's noise is a function of (seed, step).
        """
        if self.observation is None:
            first = np.random.SeedSequence((self.seed, 1, episode)).generate_state(1)[0]
            observation, _ = self.env.reset(seed=int(first))
            self.observation = np.asarray(observation, np.float32)
        noise = np.random.default_rng((self.seed, 2, step))
        for row in range(limit):
            action = policy(self.observation, noise)
            observation, reward, terminated, truncated, _ = self.env.step(action)
            following = np.asarray(observation, np.float32)
            rows.observations[row], rows.actions[row], rows.rewards[row] = self.observation, action, reward
            rows.next_observations[row] = following
            # A time limit that is reached as the world ends is an end.
            rows.terminals[row], rows.timeouts[row] = terminated, truncated and not terminated
            self.observation = following
            if terminated or truncated:
                self.observation = None
                return row + 1, True
        return limit, False

    def table(self, columns: dict[str, Any], *, name: str, discount: float) -> Transitions:
        """The log as a table; where it stops in the middle of an episode, that is a time-out."""
        timeouts = columns["timeouts"].copy()
        timeouts[-1] |= not columns["terminals"][-1]
        space = self.actions
        more = {"timeouts": timeouts, "action_low": np.float64(space.low), "action_high": np.float64(space.high)}
        data = assemble({**columns, **more}, source=self.name, name=name, discount=discount)
        return dataclasses.replace(data, world=self.name)

    def close(self) -> None:
        self.env.close()


def _actions(name: str, space: Any) -> ContinuousActions:
    low, high = getattr(space, "low", None), getattr(space, "high", None)
    if low is None or high is None or low.ndim != 1:
        raise UserError(f"{name} has no continuous actions for SAC; its action space is {space}.")
    if not (np.isfinite(low).all() and (low == low[0]).all() and np.isfinite(high).all() and (high == high[0]).all()):
        raise UserError(f"{name} bounds its actions by {low} and {high}; SAC here needs one finite range for all.")
    return ContinuousActions(len(low), float(low[0]), float(high[0]))
