"""Features and a last linear layer: separate things with names."""

from dr3.networks.action_critic import ActionCritic, TwinCritics
from dr3.networks.actor_critic import ActorCritic
from dr3.networks.convolution import Convolution
from dr3.networks.convolutional import Convolutional, minatar, nature
from dr3.networks.critic import Critic, DiscreteCritic, Trunk
from dr3.networks.gaussian_policy import GaussianPolicy, TanhGaussian
from dr3.networks.heads import Heads, HistogramCritic, MultiHeadCritic, QuantileCritic
from dr3.networks.image_encoder import ImageEncoder
from dr3.networks.linear import Linear
from dr3.networks.mixed import Mixed, MixedEncoder
from dr3.networks.mlp import MLP
from dr3.networks.normalised import Normalised
from dr3.networks.policy_critic import PolicyCritic
from dr3.networks.state_value import StateValue, ValuedCritics
from dr3.networks.trunk import Network, trunk_for

__all__ = [
    "MLP",
    "ActionCritic",
    "ActorCritic",
    "Convolution",
    "Convolutional",
    "Critic",
    "DiscreteCritic",
    "GaussianPolicy",
    "Heads",
    "HistogramCritic",
    "ImageEncoder",
    "Linear",
    "Mixed",
    "MixedEncoder",
    "MultiHeadCritic",
    "Network",
    "Normalised",
    "PolicyCritic",
    "QuantileCritic",
    "StateValue",
    "TanhGaussian",
    "Trunk",
    "TwinCritics",
    "ValuedCritics",
    "minatar",
    "nature",
    "trunk_for",
]
