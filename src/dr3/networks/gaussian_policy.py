"""A policy over actions between -1 and 1: a Gaussian that tanh squashes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dr3.data.standardisation import Standardisation
from dr3.networks.image_encoder import ImageMLP, dense_for
from dr3.networks.linear import Linear
from dr3.networks.mixed import Seen
from dr3.networks.mlp import MLP

# As in CQL's public release.
LOG_STD = (-5.0, 2.0)
LARGEST_MEAN = 9.0
INSIDE = 1e-3  # a logged action of exactly ±1 has no density; it is moved inside by this much


class Sample(NamedTuple):
    """Actions with their log-density, and what tanh made them from: densities of others are taken there, unrounded."""

    actions: Array  # (…, n, size) in (-1, 1)
    raw: Array  # (…, n, size) atanh of them
    log_density: Array  # (…, n)


class TanhGaussian(NamedTuple):
    """a = tanh(u), u ~ N(mean, std²), for each of n states."""

    mean: Array  # (n, size) of u
    log_std: Array  # (n, size)

    @property
    def mode(self) -> Array:
        """tanh of the mean: what the policy does when it does not explore. (n, size)"""
        return jnp.tanh(self.mean)

    def sample(self, key: Array, count: int | None = None) -> Sample:
        """One action for each state, or `count` of them: (n, size) or (count, n, size)."""
        shape = self.mean.shape if count is None else (count, *self.mean.shape)
        noise = jax.random.normal(key, shape)
        raw = self.raw_at(noise)
        # The Gaussian part from the noise itself: (raw - mean) / std would lose digits where std is small.
        gaussian = -0.5 * noise**2 - self.log_std - 0.5 * math.log(2 * math.pi)
        return Sample(jnp.tanh(raw), raw, jnp.sum(gaussian - _log_slope(raw), axis=-1))

    def raw_at(self, noise: Array) -> Array:
        """u for standard normal noise (…, n, size), which tanh makes an action of."""
        return self.mean + jnp.exp(self.log_std) * noise

    def log_density_at(self, raw: Array) -> Array:
        """log π(tanh(u)) for u (…, n, size): (…, n)."""
        noise = (raw - self.mean) * jnp.exp(-self.log_std)
        gaussian = -0.5 * noise**2 - self.log_std - 0.5 * math.log(2 * math.pi)
        return jnp.sum(gaussian - _log_slope(raw), axis=-1)

    def log_density(self, actions: Array) -> Array:
        """log π(a) for actions (…, n, size) between -1 and 1: (…, n)."""
        return self.log_density_at(jnp.arctanh(jnp.clip(actions, -1 + INSIDE, 1 - INSIDE)))


class GaussianPolicy(eqx.Module):
    """π(·|s): dense layers, then mean and log-std of every action's Gaussian from one last layer.

    Where states are pictures, an encoder comes before them.
    """

    trunk: MLP | ImageMLP
    head: Linear  # width -> 2 · size

    @classmethod
    def create(
        cls,
        shape: Seen,
        actions: int,
        hidden: tuple[int, ...],
        *,
        key: Array,
        channels: tuple[int, ...] = (),
        standardisation: Standardisation | None = None,
        strided: bool = False,
    ) -> GaussianPolicy:
        of_trunk, of_head = jax.random.split(key)
        how: Any = {"standardisation": standardisation, "strided": strided}
        trunk = dense_for(shape, hidden, channels, key=of_trunk, of_encoder=key, **how)
        return cls(trunk, Linear.small(trunk.width, 2 * actions, key=of_head))

    @property
    def size(self) -> int:
        """Numbers in one action."""
        return self.head.bias.shape[0] // 2

    def __call__(self, observations: Array) -> TanhGaussian:
        mean, log_std = jnp.split(self.head(self.trunk(observations)), 2, axis=-1)
        return TanhGaussian(jnp.clip(mean, -LARGEST_MEAN, LARGEST_MEAN), jnp.clip(log_std, *LOG_STD))

    def layers(self) -> dict[str, Any]:
        """All layers by name, in forward order; the last one is `head`."""
        return {**self.trunk.layers(), "head": self.head}


def _log_slope(raw: Array) -> Array:
    """log(1 - tanh²(u)) without forming 1 - tanh², which is 0 in float32 from |u| = 9 on."""
    return 2 * (math.log(2) - raw - jax.nn.softplus(-2 * raw))
