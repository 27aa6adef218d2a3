"""What a network makes of a picture before it meets an action: convolutions with pooling, or with strides."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
from jax import Array

from dr3.data.standardisation import Standardisation
from dr3.envs.parts import Parts
from dr3.errors import UserError
from dr3.networks.convolution import Convolution
from dr3.networks.layer_norm import Norms, hidden_output, norms_for
from dr3.networks.linear import Linear
from dr3.networks.mixed import MixedEncoder, Seen
from dr3.networks.mlp import MLP

KERNEL = 3
PATCH, STRIDE = 4, 2  # of a strided encoder: the first layer sees patches side by side, all others halve
# Which part of a network's key draws its encoder. The parts that a split makes are those that fold_in gives for 0, 1,
# and so on: it must be beyond the number of any dense layer, or two layers would begin with the same weights.
OF_ENCODER = 1000


class ImageEncoder(eqx.Module):
    """Convolutions 3 x 3 with a ReLU after each; all but the last halve the picture: (n, h, w, c) -> (n, width).

    COG's three of 16 channels make 12 · 12 · 16 = 2,304 numbers of a picture of 48 x 48. Bytes are pixels, and
    count as [0, 1].

    With `strided` there is no pooling: the first layer sees patches of 4 x 4, the others are 3 x 3 with stride 2. That
    is for processors: 16 and 32 channels make 6 · 6 · 32 = 1,152 numbers in a tenth of the products.
    """

    convolutions: tuple[Convolution, ...]
    width: int = eqx.field(static=True)
    norms: Norms = ()
    strided: bool = eqx.field(static=True, default=False)

    @classmethod
    def create(
        cls,
        shape: tuple[int, ...],
        channels: tuple[int, ...],
        *,
        key: Array,
        layer_norm: bool = False,
        strided: bool = False,
    ) -> ImageEncoder:
        """Xavier-uniform layers for pictures of this (height, width, channels)."""
        height, width, inputs = shape
        halvings = len(channels) + 1 if strided else len(channels) - 1
        if min(height, width) < 2**halvings:
            raise UserError(f"A picture of {height} x {width} cannot be halved {halvings} times: give fewer channels.")
        keys = jax.random.split(key, len(channels))
        pairs = zip((inputs, *channels[:-1]), channels, keys, strict=True)
        if not strided:
            layers = tuple(Convolution.glorot(before, after, KERNEL, key=of) for before, after, of in pairs)
            size = (height >> halvings) * (width >> halvings) * channels[-1]
            return cls(layers, size, norms_for(channels, layer_norm))
        layers = tuple(
            Convolution.glorot(before, after, PATCH if first else KERNEL, key=of, stride=PATCH if first else STRIDE)
            for first, (before, after, of) in zip([True] + [False] * (len(channels) - 1), pairs, strict=True)
        )
        for layer in layers:
            height, width, _ = layer.output_shape(height, width)
        return cls(layers, height * width * channels[-1], norms_for(channels, layer_norm), strided=True)

    def __call__(self, pictures: Array) -> Array:
        x = pictures
        for number, layer in enumerate(self.convolutions[:-1]):
            x = hidden_output(self.norms, number, layer(x) if self.strided else layer.halved(x))
        x = hidden_output(self.norms, -1, self.convolutions[-1](x))
        return x.reshape(len(x), math.prod(x.shape[1:]))

    def layers(self) -> dict[str, Convolution]:
        """The layers by name, in forward order."""
        return {f"conv{number}": layer for number, layer in enumerate(self.convolutions, start=1)}


class ImageMLP(eqx.Module):
    """Dense layers over what an encoder of its own sees: (n, h, w, c) -> (n, width)."""

    encoder: ImageEncoder | MixedEncoder
    dense: MLP

    @property
    def width(self) -> int:
        return self.dense.width

    def __call__(self, observations: Array) -> Array:
        return self.dense(self.encoder(observations))

    def layers(self) -> dict[str, Any]:
        return {**self.encoder.layers(), **self.dense.layers()}


def dense_for(
    shape: Seen,
    hidden: tuple[int, ...],
    channels: tuple[int, ...],
    *,
    key: Array,
    of_encoder: Array,
    standardisation: Standardisation | None = None,
    strided: bool = False,
) -> MLP | ImageMLP:
    """Dense layers as CQL's release draws them, over what an encoder sees where observations are pictures."""
    encoder = encoder_for(shape, channels, key=of_encoder, standardisation=standardisation, strided=strided)
    if encoder is None:
        assert not isinstance(shape, Parts)
        return MLP.create(shape, hidden, key=key, layer=Linear.biased, standardisation=standardisation)
    return ImageMLP(encoder, MLP.create((encoder.width,), hidden, key=key, layer=Linear.biased))


def encoder_for(
    shape: Seen,
    channels: tuple[int, ...],
    *,
    key: Array,
    layer_norm: bool = False,
    standardisation: Standardisation | None = None,
    strided: bool = False,
) -> ImageEncoder | MixedEncoder | None:
    """An encoder where observations are pictures (height, width, channels), or have parts; vectors need none."""
    if isinstance(shape, Parts):

        def encoder(picture: tuple[int, ...], key: Array) -> ImageEncoder:
            return ImageEncoder.create(picture, channels, key=key, layer_norm=layer_norm, strided=strided)

        of_pictures = jax.random.fold_in(key, OF_ENCODER)
        return MixedEncoder.create(shape, encoder, key=of_pictures, standardisation=standardisation)
    if len(shape) != 3:
        return None
    of_encoder = jax.random.fold_in(key, OF_ENCODER)
    return ImageEncoder.create(shape, channels, key=of_encoder, layer_norm=layer_norm, strided=strided)
