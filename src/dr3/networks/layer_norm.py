"""LayerNorm (Ba et al., 2016): every row of a layer's outputs with mean 0 and variance 1, then scaled and shifted."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

EPSILON = 1e-6  # under the root, as in Flax


class LayerNorm(eqx.Module):
    """(1 + gain) (x - mean) / sqrt(variance + ε) + shift over the last axis; it stands before a layer's ReLU.

    After a convolution the last axis is its filters: every place of the picture by itself, as in the public code of
    PQN. The scale is kept as its distance from 1, so that all parameters with one axis start at 0.
    """

    gain: Array  # (d,)
    shift: Array  # (d,)

    @classmethod
    def of(cls, width: int) -> LayerNorm:
        return cls(jnp.zeros(width), jnp.zeros(width))

    def __call__(self, x: Array) -> Array:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        scale = jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + EPSILON)
        return centred * scale * (1 + self.gain) + self.shift


Norms = tuple[LayerNorm, ...]  # one for each hidden layer, or none at all


def norms_for(widths: Sequence[int], wanted: bool) -> Norms:
    """A LayerNorm for each hidden layer, where they are wanted."""
    return tuple(LayerNorm.of(width) for width in widths) if wanted else ()


def hidden_output(norms: Norms, number: int, x: Array) -> Array:
    """What hidden layer `number` passes on: relu(x), or relu(LayerNorm(x))."""
    return jax.nn.relu(norms[number](x) if norms else x)
