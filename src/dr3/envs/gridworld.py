"""The four 16 x 16 gridworlds of appendix A.6, with everything about them known exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.envs.gridworld_layout import GOAL, LAVA, MOVES, SIZE, START, find, random_layout, state_of, successors
from dr3.errors import UserError
from dr3.notation import settings_for, spell_settings, split

STATES, ACTIONS = SIZE * SIZE, len(MOVES)
HORIZON = 50
ACTION_NOISE = 0.05
OBSERVATION_SIZE = 16
MOST_NUMBERS = 65_536  # of an observation
SMOOTHING_SWEEPS = 10

# name: (observations are smoothed, reward is sparse). Only grid16randomobs is public under its name; the others are the
# same maze with the other choice of observation or reward.
_WORLDS = {
    "grid16smoothobs": (True, False),
    "grid16randomobs": (False, False),
    "grid16smoothsparse": (True, True),
    "grid16randomsparse": (False, True),
}
GRIDWORLDS = tuple(_WORLDS)
_DEFAULTS: dict[str, Any] = {"dim_obs": OBSERVATION_SIZE, "lava": 0.0, "matrix_only_noise": False}


@dataclass(frozen=True, eq=False)
class Gridworld:
    """A maze of 256 states (walls are states too, which nothing enters) and 5 actions: stay, up, down, left, right.

    State x + 16 y is the cell in column x of row y, counted from the upper left corner. The goal is neither terminal
    nor absorbing: an agent that stays there is rewarded at every step until the time limit.
    """

    name: str
    observations: NDArray[np.float32]  # (256, size)
    transitions: NDArray[np.float64]  # (256, 5, 256) probability of s' after a in s, action noise included
    successors: NDArray[np.int64]  # (256, 5) the state that an action leads to without noise
    rewards: NDArray[np.float64]  # (256,) paid for the state that is *left*, before the move
    start: int
    goal: int
    horizon: int
    layout: str  # one line of letters for each row: # wall, S start, R goal, L lava, O empty
    action_noise: float  # in sampled steps: the probability that a uniformly random action replaces the chosen one
    options: Mapping[str, Any]  # those that are not at their default

    @property
    def word(self) -> str:
        """What `spelled_gridworld` rebuilds it from: its name, then its options (`grid16smoothobs:lava=0.1`)."""
        return spell_settings(self.name, self.options)

    def step(self, state: int, action: int, random: np.random.Generator) -> int:
        """One sampled move; its reward is `rewards[state]`."""
        if self.action_noise and random.random() < self.action_noise:
            action = int(random.integers(ACTIONS))
        return int(self.successors[state, action])


@cache  # a world is frozen, and smoothing its observations takes a tenth of a second
def gridworld(
    name: str, *, dim_obs: int = OBSERVATION_SIZE, lava: float = 0.0, matrix_only_noise: bool = False
) -> Gridworld:
    """Build one of `GRIDWORLDS`.

    Args:
        name: The name.
        dim_obs: How many numbers an observation has.
        lava: The share of the empty cells that hold lava, which is never left again and costs 1 at every step.
        matrix_only_noise: Only the transition matrix carries the action noise and sampled steps are deterministic, as
            in the original code; by default both carry it.
    """
    if name not in _WORLDS:
        raise UserError(f"There is no gridworld named {name!r}; choose one of {', '.join(GRIDWORLDS)}.")
    if not 1 <= dim_obs <= MOST_NUMBERS:
        raise UserError(f"The size of an observation (dim_obs) must be from 1 to {MOST_NUMBERS}, not {dim_obs}.")
    smooth, sparse = _WORLDS[name]
    options = {"dim_obs": int(dim_obs), "lava": float(lava), "matrix_only_noise": bool(matrix_only_noise)}
    tiles = random_layout(lava=float(lava))
    table = successors(tiles)
    return Gridworld(
        name=name,
        observations=_smooth_observations(table, dim_obs) if smooth else _random_observations(dim_obs),
        transitions=_transition_matrix(table),
        successors=table,
        rewards=_rewards(tiles, sparse=sparse),
        start=state_of(find(tiles, START)),
        goal=state_of(find(tiles, GOAL)),
        horizon=HORIZON,
        layout="\n".join("".join(row) for row in tiles),
        action_noise=0.0 if matrix_only_noise else ACTION_NOISE,
        options={key: value for key, value in options.items() if value != _DEFAULTS[key]},
    )


def is_gridworld(word: str) -> bool:
    """Whether it names one of `GRIDWORLDS`, with or without options.

    Args:
        word: A name, with or without options.
    """
    return split(word)[0] in _WORLDS


def spelled_gridworld(word: str) -> Gridworld:
    """The world behind `grid16smoothobs:lava=0.1`; options as in `gridworld`.

    Args:
        word: A name, with or without options.
    """
    name, _ = split(word)

    def build(dim_obs: int = OBSERVATION_SIZE, lava: float = 0.0, matrix_only_noise: bool = False) -> Gridworld:
        return gridworld(name, dim_obs=dim_obs, lava=lava, matrix_only_noise=matrix_only_noise)

    return build(**settings_for(build, word))


def _transition_matrix(table: NDArray[np.int64]) -> NDArray[np.float64]:
    """0.95 P_a + 0.01 Σ_b P_b: with probability 0.05 the action is drawn anew from all five."""
    chosen = np.eye(STATES)[table]  # (256, 5, 256)
    return (1 - ACTION_NOISE) * chosen + ACTION_NOISE * chosen.mean(axis=1, keepdims=True)


def _rewards(tiles: NDArray[np.str_], *, sparse: bool) -> NDArray[np.float64]:
    """Sparse: 1 at the goal. Dense: max(0, 1 - L1(cell, goal) / L1(start, goal)). In both, -1 on lava: (256,)."""
    rows, columns = np.indices(tiles.shape)
    goal, start = find(tiles, GOAL), find(tiles, START)
    if sparse:
        rewards = (tiles == GOAL).astype(np.float64)
    else:
        distance = np.abs(columns - goal[0]) + np.abs(rows - goal[1])
        rewards = np.maximum(0.0, 1 - distance / (abs(start[0] - goal[0]) + abs(start[1] - goal[1])))
    return np.where(tiles == LAVA, -1.0, rewards).ravel()


def _random_observations(size: int) -> NDArray[np.float32]:
    # The legacy generator is part of the definition: its stream gives the published observations.
    return np.random.RandomState(0).uniform(-1, 1, (STATES, size)).astype(np.float32)


def _smooth_observations(table: NDArray[np.int64], size: int) -> NDArray[np.float32]:
    """Normal noise, averaged ten times over where the five actions lead.

    Each state sees its predecessors in index order already updated (Gauss-Seidel): the original sweeps in place. Wall
    and lava cells lead only to themselves and keep their raw noise.
    """
    observations = np.random.RandomState(0).standard_normal((STATES, size)).astype(np.float32)
    for _ in range(SMOOTHING_SWEEPS):
        for state in range(STATES):
            observations[state] = observations[table[state]].mean(axis=0)
    return observations
