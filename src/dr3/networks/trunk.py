"""Which network makes the features, by name."""

from __future__ import annotations

from typing import Literal

from jax import Array

from dr3.data.standardisation import Standardisation
from dr3.errors import UserError
from dr3.networks.convolutional import minatar, nature
from dr3.networks.critic import Trunk
from dr3.networks.mlp import MLP
from dr3.networks.normalised import Normalised

Network = Literal["auto", "mlp", "minatar", "nature", "nature-valid"]

LARGE_IMAGE = 36  # the side from which the Nature network's strides leave something to look at


def trunk_for(
    network: Network,
    shape: tuple[int, ...],
    hidden: tuple[int, ...],
    *,
    key: Array,
    normalise: bool = False,
    layer_norm: bool = False,
    hyperspherical: bool = False,
    standardisation: Standardisation | None = None,
) -> Trunk:
    """The network for observations of this shape; "auto" takes convolutions for images (height, width, channels).

    A convolutional network's features are as wide as the last entry of `hidden`. `normalise` gives them unit length.

    Args:
        network: Its name.
        shape: Of one observation.
        hidden: Widths of dense layers; the last is that of the features.
        key: Draws the weights.
        normalise: Give the features unit length.
        layer_norm: A LayerNorm before every ReLU.
        hyperspherical: Features and weights of unit length in every layer; for dense layers alone.
        standardisation: Of observations that are vectors, before the first layer.
    """
    if hyperspherical:
        if network not in ("auto", "mlp") or (network == "auto" and len(shape) == 3):
            raise UserError("hyperspherical is for dense layers: images need --network mlp for it.")
        dense = MLP.hyperspherical(shape, hidden, key=key, standardisation=standardisation)
        return Normalised(dense, dense.width)
    trunk = _plain(network, shape, hidden, key=key, layer_norm=layer_norm, standardisation=standardisation)
    return Normalised(trunk, trunk.width) if normalise else trunk


def _plain(
    network: Network,
    shape: tuple[int, ...],
    hidden: tuple[int, ...],
    *,
    key: Array,
    layer_norm: bool,
    standardisation: Standardisation | None,
) -> Trunk:
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
