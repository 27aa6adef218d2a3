"""The policy that logged: its probabilities as they were logged, or as they can be told from the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.transitions import DiscreteActions, Transitions
from dr3.methods.cloning import cloned_policy
from dr3.ope.direct import StateTable

LOGGED = "propensities in the log"
LEAST = 1e-3  # a propensity below this is rounding, or a clone's guess about an action that was logged after all


@dataclass(frozen=True)
class Behavior:
    """What is known of the policy that logged."""

    taken: NDArray[np.float64] | None  # (N,) β(a|s) of the logged actions; None where actions are continuous
    probabilities: NDArray[np.float64] | None  # (N, A) β(·|s)
    following: NDArray[Any]  # what it did, or may have done, at s': an action for each row
    how: str


def behavior_of(data: Transitions, *, seed: int = 0) -> Behavior:
    """Propensities of the log where it has them; else the log's own frequencies by state, or a cloned policy.

    A frequency or a clone is fitted to the very actions that it weighs. That is known to make importance sampling
    better, not worse (Hanna, Niekum and Stone, 2019).

    Args:
        data: The log.
        seed: Of the clone, and of a' where the log was cut and holds none.
    """
    if not isinstance(data.action_space, DiscreteActions):
        # Where the log was cut, its a' is unknown; the last action is held on to for that one row.
        known = data.next_action_known[:, None]
        following = np.where(known, data.next_actions, data.actions).astype(np.float32)
        return Behavior(None, None, following, "not known: actions are continuous")
    table = StateTable.of(data)
    if table is not None:
        shares = table.frequencies(data)
        here, there, how = shares[table.states], shares[table.following], "how often each action was logged in a state"
    else:
        clone = cloned_policy(data, seed=seed)
        here, there = clone(data.observations, data.masks), clone(data.next_observations, data.next_masks)
        how = "cloned from the log"
    here = here.astype(np.float64)
    taken = np.maximum(here[np.arange(len(data)), data.actions], LEAST)
    if data.propensities is not None:
        taken, how = np.maximum(data.propensities.astype(np.float64), LEAST), LOGGED
    # One draw from each row's probabilities, for the few rows whose a' is not logged.
    allowed = np.ones_like(there) if data.next_masks is None else data.next_masks
    likely = np.cumsum(np.where(there.sum(axis=1, keepdims=True) > 0, there, allowed), axis=1, dtype=np.float64)
    lots = np.random.default_rng(seed).random(len(data)) * likely[:, -1]
    drawn = (likely < lots[:, None]).sum(axis=1).clip(0, data.action_space.count - 1)
    following = np.where(data.next_action_known, data.next_actions, drawn)
    return Behavior(taken, here, following, how)
