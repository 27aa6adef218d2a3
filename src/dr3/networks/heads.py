"""Critics with more than one number per action in their last layer: many heads, quantiles, or a histogram."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Shaped

from dr3.networks.critic import DiscreteCritic, Trunk
from dr3.networks.initialisation import variance_scaled, variance_scaled_kernel
from dr3.networks.linear import Linear


class Heads(eqx.Module):
    """K linear layers side by side."""

    weight: Array  # (K, in, out)
    bias: Array  # (K, out)

    def mixed(self, shares: Array) -> Linear:
        """Σ_k shares_k (W_k, b_k): one layer. A mixture of linear outputs is the output of the mixed weights."""
        return Linear(jnp.tensordot(shares, self.weight, 1), shares @ self.bias)


class MultiHeadCritic(eqx.Module):
    """K heads, each with one output per action, on one trunk (REM). Its values are the plain mean of the heads'."""

    trunk: Trunk
    head: Heads

    @classmethod
    def create(cls, trunk: Trunk, actions: int, heads: int, *, key: Array) -> MultiHeadCritic:
        of_trunk, of_heads = jax.random.split(key)
        weight = variance_scaled_kernel((heads, trunk.width, actions), trunk.width, key=of_heads)
        return cls(variance_scaled(trunk, key=of_trunk), Heads(weight, jnp.zeros((heads, actions))))

    def mixed(self, shares: Array) -> DiscreteCritic:
        """The critic with one head that is this convex combination (K,) of all."""
        return DiscreteCritic(self.trunk, self.head.mixed(shares))

    def mean(self) -> DiscreteCritic:
        heads = len(self.head.weight)
        return self.mixed(jnp.full(heads, 1 / heads))

    def features(self, observations: Shaped[Array, " n *shape"]) -> Float[Array, "n d"]:
        """phi(s)."""
        return self.trunk(observations)

    def values(self, phi: Float[Array, "n d"]) -> Float[Array, "n actions"]:
        """The mean of the heads."""
        return self.mean().values(phi)

    def layers(self) -> dict[str, Any]:
        """All layers by name, in forward order; the last one is `head`."""
        return {**self.trunk.layers(), "head": self.head}


class QuantileCritic(eqx.Module):
    """N quantiles of the return for each action (QR-DQN). Its values are their mean."""

    trunk: Trunk
    head: Linear  # width -> actions * N
    count: int = eqx.field(static=True)  # N

    @classmethod
    def create(cls, trunk: Trunk, actions: int, quantiles: int, *, key: Array) -> QuantileCritic:
        of_trunk, of_head = jax.random.split(key)
        weight = variance_scaled_kernel((trunk.width, actions * quantiles), trunk.width, key=of_head)
        return cls(variance_scaled(trunk, key=of_trunk), Linear(weight, jnp.zeros(actions * quantiles)), quantiles)

    def features(self, observations: Shaped[Array, " n *shape"]) -> Float[Array, "n d"]:
        """phi(s)."""
        return self.trunk(observations)

    def quantiles(self, phi: Float[Array, "n d"]) -> Float[Array, "n actions N"]:
        """For the levels (i + 1/2) / N."""
        return self.head(phi).reshape(len(phi), -1, self.count)

    def values(self, phi: Float[Array, "n d"]) -> Float[Array, "n actions"]:
        """The mean of the quantiles."""
        return self.quantiles(phi).mean(axis=-1)

    def layers(self) -> dict[str, Any]:
        """All layers by name, in forward order; the last one is `head`."""
        return {**self.trunk.layers(), "head": self.head}


class HistogramCritic(eqx.Module):
    """Logits of m equal bins of the value for each action (HL-Gauss). Its values are the mean of the bins' centres."""

    trunk: Trunk
    head: Linear  # width -> actions * m
    bins: int = eqx.field(static=True)  # m
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)

    @classmethod
    def create(
        cls, trunk: Trunk, actions: int, bins: int, support: tuple[float, ...], *, key: Array
    ) -> HistogramCritic:
        """`support` is the lowest and the highest value."""
        low, high = support
        return cls(trunk, Linear.fan_in(trunk.width, actions * bins, key=key), bins, low, high)

    @property
    def edges(self) -> Array:
        """Of the bins: (m + 1,)."""
        return jnp.linspace(self.low, self.high, self.bins + 1)

    def features(self, observations: Shaped[Array, " n *shape"]) -> Float[Array, "n d"]:
        """phi(s)."""
        return self.trunk(observations)

    def logits(self, phi: Float[Array, "n d"]) -> Float[Array, "n actions m"]:
        """Of every bin."""
        return self.head(phi).reshape(len(phi), -1, self.bins)

    def values(self, phi: Float[Array, "n d"]) -> Float[Array, "n actions"]:
        """Σ softmax(logits) · centres."""
        centres = 0.5 * (self.edges[:-1] + self.edges[1:])
        return jax.nn.softmax(self.logits(phi)) @ centres

    def layers(self) -> dict[str, Any]:
        """All layers by name, in forward order; the last one is `head`."""
        return {**self.trunk.layers(), "head": self.head}
