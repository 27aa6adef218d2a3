"""Features of images: convolutions, then one dense layer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
from jax import Array

from dr3.networks.convolution import Convolution, Implementation, Padding
from dr3.networks.kernels.blocks import ONE_CORE, blocks_for, in_blocks
from dr3.networks.layer_norm import Norms, hidden_output, norms_for
from dr3.networks.linear import Linear

# Bytes of the largest layer's outputs for a block of images, where there is one core: 8 images of the Nature network.
# Its update with DR3: 117 instead of 136 ms on one core. With two cores for a member it is 107 instead of 76.
CACHED = 2**19


class Stage(NamedTuple):
    """One convolution of a network."""

    filters: int
    kernel: int
    stride: int


class Convolutional(eqx.Module):
    """phi(s) of images: (n, h, w, c) -> (n, width), with a ReLU after every layer, so that features are never negative.

    Bytes are pixels, and count as [0, 1]; anything else (floats, the booleans of MinAtar) is taken as it is.
    """

    convolutions: tuple[Convolution, ...]
    dense: Linear
    width: int = eqx.field(static=True)
    norms: Norms = ()

    @classmethod
    def build(
        cls,
        shape: tuple[int, int, int],
        stages: Sequence[Stage],
        *,
        key: Array,
        padding: Padding,
        units: int,
        implementation: Implementation = "auto",
        layer_norm: bool = False,
    ) -> Convolutional:
        """Xavier-uniform layers for images of this (height, width, channels)."""
        *stage_keys, dense_key = jax.random.split(key, len(stages) + 1)
        height, width, channels = shape
        convolutions = []
        for (filters, kernel, stride), stage_key in zip(stages, stage_keys, strict=True):
            convolution = Convolution.glorot(
                channels, filters, kernel, stride=stride, padding=padding, implementation=implementation, key=stage_key
            )
            height, width, channels = convolution.output_shape(height, width)
            convolutions.append(convolution)
        dense = Linear.glorot(height * width * channels, units, key=dense_key)
        norms = norms_for([*(stage.filters for stage in stages), units], layer_norm)
        return cls(tuple(convolutions), dense, units, norms)

    def __call__(self, observations: Array) -> Array:
        seen = in_blocks(self._convolved, observations, self._blocks(observations))
        return hidden_output(self.norms, -1, self.dense(seen))

    def _convolved(self, observations: Array) -> Array:
        """(n, h, w, c) -> (n, h' · w' · filters)."""
        x = observations
        for number, convolution in enumerate(self.convolutions):
            x = hidden_output(self.norms, number, convolution(x))
        return x.reshape(x.shape[0], -1)

    def outputs(self, observations: Array) -> dict[str, Array]:
        """What every hidden layer passes on, by its name."""
        x, outputs = observations, []
        for number, convolution in enumerate(self.convolutions):
            x = hidden_output(self.norms, number, convolution(x))
            outputs.append(x)
        outputs.append(hidden_output(self.norms, -1, self.dense(x.reshape(x.shape[0], -1))))
        return dict(zip(self.layers(), outputs, strict=True))

    def _blocks(self, observations: Array) -> int:
        if not ONE_CORE.value:
            return 1
        largest = max(math.prod(shape) for shape in self._shapes(*observations.shape[1:3]))
        return blocks_for(len(observations), largest * self.dense.weight.dtype.itemsize, CACHED)

    def _shapes(self, height: int, width: int) -> Iterator[tuple[int, int, int]]:
        """(h', w', filters) after each convolution."""
        for convolution in self.convolutions:
            height, width, filters = convolution.output_shape(height, width)
            yield height, width, filters

    def layers(self) -> dict[str, Convolution | Linear]:
        """Every layer by name, in forward order."""
        named: dict[str, Convolution | Linear] = {
            f"conv{number}": layer for number, layer in enumerate(self.convolutions, start=1)
        }
        return {**named, "dense": self.dense}


def nature(
    shape: tuple[int, int, int],
    *,
    key: Array,
    padding: Padding = "SAME",
    units: int = 512,
    layer_norm: bool = False,
) -> Convolutional:
    """The network of Mnih et al. (2015), with the padding and the kernels that the public Atari agents give it.

    On 84 x 84 the dense layer sees 11 · 11 · 64 = 7744 inputs; "VALID", the padding of the original, leaves 3136.

    Args:
        shape: Of one observation.
        key: Draws the weights.
        padding: What convolutions see beyond the edge: SAME or VALID.
        units: The width of the features.
        layer_norm: A LayerNorm before every ReLU.
    """
    stages = (Stage(32, kernel=8, stride=4), Stage(64, kernel=4, stride=2), Stage(64, kernel=3, stride=1))
    return Convolutional.build(shape, stages, key=key, padding=padding, units=units, layer_norm=layer_norm)


def minatar(shape: tuple[int, int, int], *, key: Array, units: int = 128, layer_norm: bool = False) -> Convolutional:
    """The network of Young and Tian (2019): one 3 x 3 convolution of 16 filters without padding.

    Args:
        shape: Of one observation.
        key: Draws the weights.
        units: The width of the features.
        layer_norm: A LayerNorm before every ReLU.
    """
    stages = (Stage(16, kernel=3, stride=1),)
    return Convolutional.build(shape, stages, key=key, padding="VALID", units=units, layer_norm=layer_norm)
