"""Which network makes the features, by name."""

from __future__ import annotations

from typing import Literal

from jax import Array

from dr3.errors import UserError
from dr3.networks.convolutional import minatar, nature
from dr3.networks.critic import Trunk
from dr3.networks.mlp import MLP
from dr3.networks.normalised import Normalised

Network = Literal["auto", "mlp", "minatar", "nature", "nature-valid"]

LARGE_IMAGE = 36  # the side from which the Nature network's strides leave something to look at


def trunk_for(
    network: Network, shape: tuple[int, ...], hidden: tuple[int, ...], *, key: Array, normalise: bool = False
) -> Trunk:
    """The network for observations of this shape; "auto" takes convolutions for images (height, width, channels).

    A convolutional network's features are as wide as the last entry of `hidden`. `normalise` gives them unit length.
    """
    trunk = _plain(network, shape, hidden, key=key)
    return Normalised(trunk, trunk.width) if normalise else trunk


def _plain(network: Network, shape: tuple[int, ...], hidden: tuple[int, ...], *, key: Array) -> Trunk:
    if network == "auto":
        network = "mlp" if len(shape) != 3 else "nature" if min(shape[:2]) >= LARGE_IMAGE else "minatar"
    if network == "mlp":
        return MLP.create(shape, hidden, key=key)
    if len(shape) != 3:
        raise UserError(f"The network {network!r} is for images (height, width, channels), not for shape {shape}.")
    image = (shape[0], shape[1], shape[2])
    if network == "minatar":
        return minatar(image, key=key, units=hidden[-1])
    return nature(image, key=key, padding="SAME" if network == "nature" else "VALID", units=hidden[-1])
