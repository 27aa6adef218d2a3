"""Features of unit length."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dr3.networks.critic import Trunk

SMALLEST = 1e-12  # ReLU features can all be 0; such a vector stays 0 and passes no gradient, instead of NaN


class Normalised(eqx.Module):
    """phi / ‖phi‖ of another trunk: the last layer sees directions only.

    The natural rival of DR3 (Kumar et al., 2023, scaling offline Q-learning): features cannot grow, so that the dot
    product of phi(s) and phi(s') is their cosine, at most 1 — but nothing keeps that cosine from 1.
    """

    trunk: Trunk
    width: int = eqx.field(static=True)

    def __call__(self, observations: Array) -> Array:
        phi = self.trunk(observations)
        return phi * jax.lax.rsqrt(jnp.maximum(jnp.sum(phi**2, axis=-1, keepdims=True), SMALLEST))

    def layers(self) -> dict[str, Any]:
        return self.trunk.layers()
