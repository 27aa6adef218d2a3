"""Targets clipped to what the rewards in the data allow."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import Array

from dr3.data.batch import Batch
from dr3.data.return_bounds import return_bounds
from dr3.data.transitions import Transitions
from dr3.errors import UserError


def with_value_bounds(data: Transitions, discount: float) -> Transitions:
    """The table with r_min / (1 - γ) and r_max / (1 - γ) in every row.

    Where an episode can end, one reward alone is a return, too: rewards that are all positive are not clipped from
    below by r_min / (1 - γ), but by r_min.
    """
    if discount == 1:
        raise UserError("target_clip needs a discount below 1: with 1 rewards alone allow any return.")
    bounds = return_bounds(data.rewards, discount, ends=bool(data.terminals.any()))
    return dataclasses.replace(data, value_bounds=np.tile(np.array(bounds, np.float32), (len(data), 1)))


def clipped(targets: Array, batch: Batch) -> Array:
    """Targets (n,) or (n, m) within the bounds of their rows."""
    assert batch.value_bounds is not None, "a method that clips has prepared its table"
    low, high = batch.value_bounds.T.reshape(2, -1, *[1] * (targets.ndim - 1))
    return jnp.clip(targets, low, high)
