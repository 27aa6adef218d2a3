"""Features and weights of unit length in every layer (SimbaV2's idea; Lee et al., 2025)."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dr3.networks.kernels.product import product
from dr3.networks.normalised import unit_length

SHIFT = 3.0  # a constant beside the observation, so that its length survives; SimbaV2's value


class SphereLinear(eqx.Module):
    """(1 + gain) · x̂ Ŵ: the input and every unit's weights have length 1, so that nothing can grow but the gains.

    In SimbaV2 weights are put back on the sphere after each step. Here they are divided by their length where they are
    used: their length does not matter, and no update needs to know. There is no bias.
    """

    weight: Array  # (in, out); of a first layer one row more than inputs
    gain: Array  # (out,)
    first: bool = eqx.field(static=True, default=False)

    @classmethod
    def create(cls, inputs: int, outputs: int, *, key: Array, first: bool = False) -> SphereLinear:
        """Directions drawn uniformly."""
        return cls(jax.random.normal(key, (inputs + first, outputs)), jnp.zeros(outputs), first)

    def __call__(self, x: Array) -> Array:
        if self.first:
            x = jnp.concatenate([x, jnp.full((*x.shape[:-1], 1), SHIFT, x.dtype)], axis=-1)
        return product(unit_length(x), unit_length(self.weight, axis=-2)) * (1 + self.gain)
