"""A dense layer for batches."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dr3.networks.kernels.product import product


class Linear(eqx.Module):
    """x W + b over the last axis, for any leading axes.

    Equinox's own layer takes one vector and stores W as (out, in). This one takes batches, because the convolution
    beside it must see a whole batch to be one matmul, and stores W as (in, out), so that no product needs a transposed
    copy of it in the forward pass.
    """

    weight: Array  # (in, out)
    bias: Array  # (out,)

    @classmethod
    def fan_in(cls, inputs: int, outputs: int, *, key: Array) -> Linear:
        """Weights and biases uniform in ± 1 / sqrt(fan-in): PyTorch's default, which the public gridworld code uses."""
        limit = inputs**-0.5
        of_weight, of_bias = jax.random.split(key)
        return cls(
            jax.random.uniform(of_weight, (inputs, outputs), minval=-limit, maxval=limit),
            jax.random.uniform(of_bias, (outputs,), minval=-limit, maxval=limit),
        )

    @classmethod
    def glorot(cls, inputs: int, outputs: int, *, key: Array) -> Linear:
        """Weights uniform in ± sqrt(6 / (fan-in + fan-out)), no bias: what the public Atari agents start from."""
        limit = (6.0 / (inputs + outputs)) ** 0.5
        weight = jax.random.uniform(key, (inputs, outputs), minval=-limit, maxval=limit)
        return cls(weight, jnp.zeros(outputs))

    @classmethod
    def biased(cls, inputs: int, outputs: int, *, key: Array) -> Linear:
        """Weights uniform in ± 1 / sqrt(fan-in), every bias 0.1: the hidden layers of CQL's public release."""
        limit = inputs**-0.5
        weight = jax.random.uniform(key, (inputs, outputs), minval=-limit, maxval=limit)
        # A dtype, because a weakly typed bias changes its type in the first update, and every program compiles again.
        return cls(weight, jnp.full(outputs, 0.1, jnp.float32))

    @classmethod
    def small(cls, inputs: int, outputs: int, *, key: Array) -> Linear:
        """Weights and biases uniform in ± 0.003: the last layers of CQL's public release, which start near 0."""
        limit = 3e-3
        of_weight, of_bias = jax.random.split(key)
        return cls(
            jax.random.uniform(of_weight, (inputs, outputs), minval=-limit, maxval=limit),
            jax.random.uniform(of_bias, (outputs,), minval=-limit, maxval=limit),
        )

    def __call__(self, x: Array) -> Array:
        return product(x, self.weight) + self.bias
