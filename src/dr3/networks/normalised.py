"""Features of unit length."""

from __future__ import annotations

from typing import Any, cast

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
        return unit_length(self.trunk(observations))

    def outputs(self, observations: Array) -> dict[str, Array]:
        """What every hidden layer passes on, by its name, before it has unit length."""
        return cast(Any, self.trunk).outputs(observations)

    def layers(self) -> dict[str, Any]:
        return self.trunk.layers()


def unit_length(x: Array, axis: int = -1) -> Array:
    """x / ‖x‖ along an axis; what is 0 stays 0."""
    return x * jax.lax.rsqrt(jnp.maximum(jnp.sum(x**2, axis=axis, keepdims=True), SMALLEST))
