"""Features from a stack of dense layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dr3.data.standardisation import Standardisation
from dr3.networks.hypersphere import SphereLinear
from dr3.networks.layer_norm import Norms, hidden_output, norms_for
from dr3.networks.linear import Linear


def standardised(x: Array, by: Standardisation | None) -> Array:
    """Vectors (n, columns) as a network's first layer sees them; without a standardisation as they are."""
    return x if by is None else (x - jnp.asarray(by.mean)) / jnp.asarray(by.deviation)


class MLP(eqx.Module):
    """Dense layers, a ReLU after each: (n, *shape) -> (n, width). The last layer's output are the features."""

    stack: tuple[Linear, ...]
    width: int = eqx.field(static=True)
    norms: Norms = ()
    standardisation: Standardisation | None = eqx.field(static=True, default=None)  # of what comes in

    @classmethod
    def create(
        cls,
        shape: tuple[int, ...],
        hidden: tuple[int, ...],
        *,
        key: Array,
        layer: Callable[..., Linear] = Linear.fan_in,
        layer_norm: bool = False,
        standardisation: Standardisation | None = None,
    ) -> MLP:
        """`layer` draws each of them, given its inputs, its outputs and a key."""
        sizes = (math.prod(shape), *hidden)
        keys = jax.random.split(key, len(hidden))
        pairs = zip(sizes[:-1], sizes[1:], keys, strict=True)
        stack = tuple(layer(a, b, key=k) for a, b, k in pairs)
        return cls(stack, sizes[-1], norms_for(hidden, layer_norm), standardisation)

    @classmethod
    def hyperspherical(
        cls,
        shape: tuple[int, ...],
        hidden: tuple[int, ...],
        *,
        key: Array,
        standardisation: Standardisation | None = None,
    ) -> MLP:
        """With inputs and weights of unit length in every layer."""
        firsts = iter([True, *[False] * (len(hidden) - 1)])

        def layer(inputs: int, outputs: int, *, key: Array) -> SphereLinear:
            return SphereLinear.create(inputs, outputs, key=key, first=next(firsts))

        made = cast(Callable[..., Linear], layer)
        return cls.create(shape, hidden, key=key, layer=made, standardisation=standardisation)

    def __call__(self, observations: Array) -> Array:
        x = self._flat(observations)
        for output in self._outputs(x):
            x = output
        return x

    def outputs(self, observations: Array) -> dict[str, Array]:
        """What every hidden layer passes on, by its name."""
        return dict(zip(self.layers(), self._outputs(self._flat(observations)), strict=True))

    def _flat(self, observations: Array) -> Array:
        x = observations.reshape(len(observations), math.prod(observations.shape[1:])).astype(jnp.float32)
        if observations.dtype == jnp.uint8 and observations.ndim == 4:
            x = x / 255  # bytes of images are pixels, as in a convolution
        return standardised(x, self.standardisation)

    def _outputs(self, x: Array) -> Iterator[Array]:
        for number, layer in enumerate(self.stack):
            x = hidden_output(self.norms, number, layer(x))
            yield x

    def layers(self) -> dict[str, Linear]:
        """The layers by name, in forward order."""
        return {f"dense{number}": layer for number, layer in enumerate(self.stack, start=1)}
