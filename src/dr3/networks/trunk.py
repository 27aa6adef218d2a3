"""Which network makes the features, by name."""

from __future__ import annotations

from typing import Literal

import jax
from jax import Array

from dr3.data.standardisation import Standardisation
from dr3.envs.parts import Parts
from dr3.errors import UserError
from dr3.networks.convolutional import minatar, nature
from dr3.networks.critic import Trunk
from dr3.networks.mixed import Mixed, MixedEncoder, Seen
from dr3.networks.mlp import MLP
from dr3.networks.normalised import Normalised

Network = Literal["auto", "mlp", "minatar", "nature", "nature-valid"]

LARGE_IMAGE = 36  # the side from which the Nature network's strides leave something to look at


def trunk_for(
    network: Network,
    shape: Seen,
    hidden: tuple[int, ...],
    *,
    key: Array,
    normalise: bool = False,
    layer_norm: bool = False,
    hyperspherical: bool = False,
    standardisation: Standardisation | None = None,
) -> Trunk:
    """The network for observations of this shape; "auto" takes convolutions for images (height, width, channels).

    Of observations with parts each picture has such a network, whose features are as wide as the first entry of
    `hidden`; joined with the vectors they are what the dense layers see.

    A convolutional network's features are as wide as the last entry of `hidden`. `normalise` gives them unit length.

    Args:
        network: Its name.
        shape: Of one observation, or its parts.
        hidden: Widths of dense layers; the last is that of the features.
        key: Draws the weights.
        normalise: Give the features unit length.
        layer_norm: A LayerNorm before every ReLU.
        hyperspherical: Features and weights of unit length in every layer; for dense layers alone.
        standardisation: Of observations that are vectors, or of those that are parts, before the first layer.
    """
    if hyperspherical:
        if isinstance(shape, Parts):
            raise UserError(
                "hyperspherical is for dense layers, and these observations have pictures among their parts."
            )
        if network not in ("auto", "mlp") or (network == "auto" and len(shape) == 3):
            raise UserError("hyperspherical is for dense layers: images need --network mlp for it.")
        dense = MLP.hyperspherical(shape, hidden, key=key, standardisation=standardisation)
        return Normalised(dense, dense.width)
    trunk = _plain(network, shape, hidden, key=key, layer_norm=layer_norm, standardisation=standardisation)
    return Normalised(trunk, trunk.width) if normalise else trunk


def _plain(
    network: Network,
    shape: Seen,
    hidden: tuple[int, ...],
    *,
    key: Array,
    layer_norm: bool,
    standardisation: Standardisation | None,
) -> Trunk:
    if isinstance(shape, Parts):
        of_pictures, of_dense = jax.random.split(key)

        def encoder(image: tuple[int, ...], key: Array) -> Trunk:
            return _plain(network, image, hidden[:1], key=key, layer_norm=layer_norm, standardisation=None)

        joined = MixedEncoder.create(shape, encoder, key=of_pictures, standardisation=standardisation)
        dense = MLP.create((joined.width,), hidden, key=of_dense, layer_norm=layer_norm)
        return Mixed(joined, dense, dense.width)
    if network == "auto":
        network = "mlp" if len(shape) != 3 else "nature" if min(shape[:2]) >= LARGE_IMAGE else "minatar"
    if network == "mlp":
        return MLP.create(shape, hidden, key=key, layer_norm=layer_norm, standardisation=standardisation)
    if len(shape) != 3:
        raise UserError(f"The network {network!r} is for images (height, width, channels), not for shape {shape}.")
    image = (shape[0], shape[1], shape[2])
    if network == "minatar":
        return minatar(image, key=key, units=hidden[-1], layer_norm=layer_norm)
    padding = "SAME" if network == "nature" else "VALID"
    return nature(image, key=key, padding=padding, units=hidden[-1], layer_norm=layer_norm)
