"""What both forms of IQL are made of (Kostrikov, Nair and Levine, 2021)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

LARGEST_WEIGHT = 100.0  # of a row in the policy's loss, as in the release


def expectile_loss(differences: Array, expectile: Array | float) -> Array:
    """The mean of |τ - 1(u < 0)| u², u = Q - V (Eq. 5 there): its least is where V is the τ-expectile of Q."""
    return jnp.mean(jnp.abs(expectile - (differences < 0)) * differences**2)


def advantage_weights(advantages: Array, inverse_temperature: Array | float) -> Array:
    """exp(β A), at most 100: what a logged action counts when the policy is fitted to it (Eq. 7 there)."""
    return jnp.minimum(jnp.exp(inverse_temperature * advantages), LARGEST_WEIGHT)
