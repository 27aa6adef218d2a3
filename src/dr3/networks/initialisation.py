"""How the public REM and QR-DQN networks start."""

from __future__ import annotations

import math
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

T = TypeVar("T")


def variance_scaled(network: T, *, key: Array) -> T:
    """The same network with every kernel uniform in ± sqrt(√3 / fan-in) and every bias 0.

    That is variance scaling by the factor 1/√3, as in the public code; the paper does not say how its networks start.
    The last axis of a kernel is its outputs, all others are its fan-in; an array with one axis is a bias.
    """
    leaves, structure = jax.tree.flatten(network)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [_draw(leaf, of) for leaf, of in zip(leaves, keys, strict=True)])


def variance_scaled_kernel(shape: tuple[int, ...], fan_in: int, *, key: Array) -> Array:
    """Uniform in ± sqrt(√3 / fan-in)."""
    limit = (math.sqrt(3) / fan_in) ** 0.5
    return jax.random.uniform(key, shape, minval=-limit, maxval=limit)


def _draw(leaf: Array, key: Array) -> Array:
    if leaf.ndim == 1:
        return jnp.zeros_like(leaf)
    return variance_scaled_kernel(leaf.shape, math.prod(leaf.shape[:-1]), key=key)
