"""A dense layer for batches."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array


class Linear(eqx.Module):
    """x W + b over the last axis, for any leading axes.

    Equinox's own layer takes one vector and stores W as (out, in). This one takes batches, because the convolution
    beside it must see a whole batch to be one matmul, and stores W as (in, out), the layout in which neither the forward
    nor the backward product needs a transposed copy.
    """

    weight: Array  # (in, out)
    bias: Array  # (out,)

    @classmethod
    def lecun(cls, inputs: int, outputs: int, *, key: Array) -> Linear:
        """Uniform in ± sqrt(3 / fan-in), so unit variance passes through; no bias at first."""
        limit = (3.0 / inputs) ** 0.5
        weight = jax.random.uniform(key, (inputs, outputs), minval=-limit, maxval=limit)
        return cls(weight, jnp.zeros(outputs))

    @classmethod
    def glorot(cls, inputs: int, outputs: int, *, key: Array) -> Linear:
        """Xavier-uniform, as the public Atari agents initialise; no bias at first."""
        limit = (6.0 / (inputs + outputs)) ** 0.5
        weight = jax.random.uniform(key, (inputs, outputs), minval=-limit, maxval=limit)
        return cls(weight, jnp.zeros(outputs))

    def __call__(self, x: Array) -> Array:
        return x @ self.weight + self.bias
