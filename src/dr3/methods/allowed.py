"""Which actions count: those that a mask allows, or all where there is no mask.

Whatever chooses, maximises or sums over actions goes through here. A mask is (n, A), true where the action is allowed;
None is the program without a mask, to the last bit.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array


def allowed_only(values: Array, masks: Array | None) -> Array:
    """Values or log-probabilities (n, A), with -∞ in the place of each action that is not allowed."""
    return values if masks is None else jnp.where(masks, values, -jnp.inf)


def greedy(values: Array, masks: Array | None) -> Array:
    """The best allowed action, the first of several: (n, A) -> (n,)."""
    return jnp.argmax(allowed_only(values, masks), axis=-1)


def log_policy(logits: Array, masks: Array | None) -> Array:
    """log π over the allowed actions: (n, A). It is -∞ at the others."""
    return jax.nn.log_softmax(allowed_only(logits, masks))


def renormalised(probabilities: Array, masks: Array | None) -> Array:
    """Probabilities (n, A) of the allowed actions alone; uniform over them where they have none together."""
    if masks is None:
        return probabilities
    kept = jnp.where(masks, probabilities, 0.0)
    total = jnp.sum(kept, axis=-1, keepdims=True)
    uniform = masks / jnp.sum(masks, axis=-1, keepdims=True)
    return jnp.where(total > 0, kept / jnp.where(total > 0, total, 1.0), uniform)
