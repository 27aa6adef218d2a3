"""Features and a last linear layer: separate things with names."""

from dr3.networks.convolution import Convolution
from dr3.networks.convolutional import Convolutional, minatar, nature
from dr3.networks.critic import Critic, DiscreteCritic, Trunk
from dr3.networks.heads import Heads, MultiHeadCritic, QuantileCritic
from dr3.networks.linear import Linear
from dr3.networks.mlp import MLP
from dr3.networks.normalised import Normalised
from dr3.networks.trunk import Network, trunk_for

__all__ = [
    "MLP",
    "Convolution",
    "Convolutional",
    "Critic",
    "DiscreteCritic",
    "Heads",
    "Linear",
    "MultiHeadCritic",
    "Network",
    "Normalised",
    "QuantileCritic",
    "Trunk",
    "minatar",
    "nature",
    "trunk_for",
]
