"""The next action where the log does not hold it: after a time-out, or at the end of the log."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import Array

from dr3.data.transitions import DiscreteActions, Transitions

UNLOGGED = -1  # in the place of an a': no action, and so none that a is equal to; NaN where actions are vectors


def mark_unlogged(data: Transitions) -> Transitions:
    """The table with a mark in the place of each a' that was not logged. At a terminal none is missing."""
    unlogged = ~(data.next_action_known | data.terminals)
    if not unlogged.any():
        return data
    if isinstance(data.action_space, DiscreteActions):
        marked = np.where(unlogged, UNLOGGED, data.next_actions.astype(np.int32))
    else:
        marked = np.where(unlogged[:, None], np.float32(np.nan), data.next_actions)
    return dataclasses.replace(data, next_actions=marked)


def logged_or(next_actions: Array, others: Array) -> Array:
    """The logged a' where there is one, and another action where a mark is: (n,), or (n, size) of vectors."""
    if next_actions.ndim == 1:
        return jnp.where(next_actions == UNLOGGED, others, next_actions)
    return jnp.where(jnp.isnan(next_actions), others, next_actions)
