"""Features and a last linear layer: separate things with names."""

from dr3.networks.critic import DiscreteCritic
from dr3.networks.linear import Linear
from dr3.networks.mlp import MLP

__all__ = ["MLP", "DiscreteCritic", "Linear"]
