"""How the public REM, QR-DQN and COG networks start."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dr3.networks.actor_critic import ActorCritic
from dr3.networks.image_encoder import ImageMLP

T = TypeVar("T")

TINY = 1e-4
TINY_IN_POLICY = 3  # layers: in the release these belong to what comes before the policy proper


def variance_scaled(network: T, *, key: Array) -> T:
    """The same network with every kernel uniform in ± sqrt(√3 / fan-in) and every bias 0.

    That is variance scaling by the factor 1/√3, as in the public code; the paper does not say how its networks start.
    The last axis of a kernel is its outputs, all others are its fan-in; an array with one axis is a bias.
    """
    leaves, structure = jax.tree.flatten(network)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [_draw(leaf, of) for leaf, of in zip(leaves, keys, strict=True)])


def variance_scaled_kernel(shape: tuple[int, ...], fan_in: int, *, key: Array) -> Array:
    """Uniform in ± sqrt(√3 / fan-in)."""
    limit = (math.sqrt(3) / fan_in) ** 0.5
    return jax.random.uniform(key, shape, minval=-limit, maxval=limit)


def tiny_dense(agent: ActorCritic, *, key: Array) -> ActorCritic:
    """The same networks for pictures with dense layers uniform in ± 0.0001, biases too, as COG's release starts them.

    That is all dense layers of the critics, and of the policy the three after its convolutions.
    """

    def dense(agent: ActorCritic) -> list[Any]:
        trunk = agent.policy.trunk
        assert isinstance(trunk, ImageMLP)
        own: list[Any] = []
        for critic in agent.critics.members:
            hidden = critic.stack if isinstance(critic.stack, tuple) else ()  # an empty one tree_at wraps as a leaf
            own += [critic.first, *hidden, critic.head]
        return [*own, *trunk.dense.stack[:TINY_IN_POLICY]]

    leaves, structure = jax.tree.flatten(dense(agent))
    keys = jax.random.split(key, len(leaves))
    drawn = [
        jax.random.uniform(of, leaf.shape, minval=-TINY, maxval=TINY) for leaf, of in zip(leaves, keys, strict=True)
    ]
    return eqx.tree_at(dense, agent, jax.tree.unflatten(structure, drawn))


def _draw(leaf: Array, key: Array) -> Array:
    if leaf.ndim == 1:
        return jnp.zeros_like(leaf)
    return variance_scaled_kernel(leaf.shape, math.prod(leaf.shape[:-1]), key=key)
