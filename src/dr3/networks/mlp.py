"""Features from a stack of dense layers."""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dr3.networks.linear import Linear


class MLP(eqx.Module):
    """Dense layers, a ReLU after each: (n, *shape) -> (n, width). The last layer's output are the features."""

    stack: tuple[Linear, ...]
    width: int = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        shape: tuple[int, ...],
        hidden: tuple[int, ...],
        *,
        key: Array,
        layer: Callable[..., Linear] = Linear.fan_in,
    ) -> MLP:
        """`layer` draws each of them, given its inputs, its outputs and a key."""
        sizes = (math.prod(shape), *hidden)
        keys = jax.random.split(key, len(hidden))
        pairs = zip(sizes[:-1], sizes[1:], keys, strict=True)
        return cls(tuple(layer(a, b, key=k) for a, b, k in pairs), sizes[-1])

    def __call__(self, observations: Array) -> Array:
        x = observations.reshape(len(observations), math.prod(observations.shape[1:])).astype(jnp.float32)
        if observations.dtype == jnp.uint8 and observations.ndim == 4:
            x = x / 255  # bytes of images are pixels, as in a convolution
        for layer in self.stack:
            x = jax.nn.relu(layer(x))
        return x

    def layers(self) -> dict[str, Linear]:
        """The layers by name, in forward order."""
        return {f"dense{number}": layer for number, layer in enumerate(self.stack, start=1)}
