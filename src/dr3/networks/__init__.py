"""Features and a last linear layer: separate things with names."""

from dr3.networks.convolution import Convolution
from dr3.networks.convolutional import Convolutional, minatar, nature
from dr3.networks.critic import DiscreteCritic
from dr3.networks.linear import Linear
from dr3.networks.mlp import MLP
from dr3.networks.trunk import Network, trunk_for

__all__ = [
    "MLP",
    "Convolution",
    "Convolutional",
    "DiscreteCritic",
    "Linear",
    "Network",
    "minatar",
    "nature",
    "trunk_for",
]
