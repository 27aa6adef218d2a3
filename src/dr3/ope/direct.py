"""Fitted Q evaluation of a small table without iterating: its fixed point is the solution of a linear system.

Where the log knows few states, Q is a table with an entry for every logged (s, a), and the fixed point of
Q ← r̂ + γ P̂_π Q is solved for (LSTD-Q with one feature for each pair). r̂ and P̂ are the log's own means, so a bootstrap
over episodes is one more solve.

The log says nothing of an action that it does not hold. It is taken to change nothing: it earns what the logged actions
of its state earn on average, and leads back there. A state that the log never acts in is worth what the log's states
are on average. So no value leaves what the rewards allow. How much of a policy rests on that is its `overlap` with the
log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dr3.data.frames import Frames
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.ope.acting import Acting

MOST_STATES = 400  # the cost of a solve is their number cubed

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StateTable:
    """The log by state and action."""

    states: NDArray[np.intp]  # (N,) the number of s
    following: NDArray[np.intp]  # (N,) that of s'
    count: int  # S
    actions: int  # A

    @classmethod
    def of(cls, data: Transitions) -> StateTable | None:
        """None where actions are continuous, or states too many to be counted."""
        seen, following = data.observations, data.next_observations
        if not isinstance(data.action_space, DiscreteActions) or isinstance(seen, Frames) or len(data) == 0:
            return None
        both = np.concatenate([np.asarray(seen), np.asarray(following)]).reshape(2 * len(data), -1)
        if data.masks is not None and data.next_masks is not None:  # what is allowed is part of the state
            both = np.concatenate([both, np.concatenate([data.masks, data.next_masks])], axis=1)
        few = both[:: max(1, len(both) // (4 * MOST_STATES))]  # most tables are refused by a look at a few rows
        if len(np.unique(few, axis=0)) > MOST_STATES:
            return None
        _, number = np.unique(both, axis=0, return_inverse=True)
        number = number.reshape(-1)
        if (count := int(number.max()) + 1) > MOST_STATES:
            return None
        return cls(number[: len(data)], number[len(data) :], count, data.action_space.count)

    def frequencies(self, data: Transitions, weights: Floats | None = None) -> Floats:
        """How often each action was taken in each state, as a share: (S, A); 0 in states that were never acted in."""
        pairs = self.states * self.actions + data.actions
        counts = np.bincount(pairs, weights, self.count * self.actions).reshape(self.count, -1)
        return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-12)

    def policy(self, acting: Acting, number: int) -> Floats:
        """π(·|s) of one policy by state: (S, A)."""
        asked = np.zeros((self.count, self.actions))
        for states, said in ((self.following, acting.following), (self.states, acting.here)):
            rows = said[:, number]
            np.add.at(asked, states, rows if rows.ndim == 2 else np.eye(self.actions)[rows])
        return asked / asked.sum(axis=1, keepdims=True)


def solve(
    table: StateTable, data: Transitions, policy: Floats, discount: float, weights: Floats
) -> tuple[Floats, Floats]:
    """V (S,) and Q (S, A) of a policy in the world that the log describes, each row counted `weights` (N,) times."""
    pairs = table.states * table.actions + data.actions
    size, states = table.count * table.actions, table.count
    counts = np.bincount(pairs, weights, size)
    known = np.maximum(counts, 1e-12)
    rewards = (np.bincount(pairs, weights * data.rewards, size) / known).reshape(states, -1)
    goes_on = weights * ~data.terminals
    moves = np.bincount(pairs * states + table.following, goes_on, size * states).reshape(size, states) / known[:, None]
    counts = counts.reshape(states, -1)
    logged = counts > 0
    kept = policy * logged
    rest = 1 - kept.sum(axis=1)  # of the policy's probability: what the log does not hold
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-12)
    usual = (shares * rewards).sum(axis=1)
    matrix = np.eye(states) * (1 - discount * rest[:, None])
    matrix -= discount * np.einsum("sa,sat->st", kept, moves.reshape(states, -1, states))
    acted = logged.any(axis=1)
    matrix[~acted] = np.eye(states)[~acted] - counts.sum(axis=1) / counts.sum()
    values = np.linalg.solve(matrix, np.where(acted, (kept * rewards).sum(axis=1) + rest * usual, 0.0))
    q = rewards + discount * (moves @ values).reshape(states, -1)
    return values, np.where(logged, q, (usual + discount * values)[:, None])
