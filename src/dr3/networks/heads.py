"""Critics with more than one number per action in their last layer: many heads, or the quantiles of a return."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

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

    def features(self, observations: Array) -> Array:
        """phi(s): (n, *shape) -> (n, width)."""
        return self.trunk(observations)

    def values(self, phi: Array) -> Array:
        """The mean of the heads: (n, width) -> (n, actions)."""
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

    def features(self, observations: Array) -> Array:
        """phi(s): (n, *shape) -> (n, width)."""
        return self.trunk(observations)

    def quantiles(self, phi: Array) -> Array:
        """(n, width) -> (n, actions, N), for the levels (i + 1/2) / N."""
        return self.head(phi).reshape(len(phi), -1, self.count)

    def values(self, phi: Array) -> Array:
        """(n, width) -> (n, actions)."""
        return self.quantiles(phi).mean(axis=-1)

    def layers(self) -> dict[str, Any]:
        """All layers by name, in forward order; the last one is `head`."""
        return {**self.trunk.layers(), "head": self.head}
