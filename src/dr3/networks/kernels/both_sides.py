"""One pass over [s; s'] in the place of two."""

from __future__ import annotations

from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from dr3.data.batch import Batch
from dr3.networks.critic import Critic, Trunk

AnyCritic = TypeVar("AnyCritic", bound=Critic)


class OnePass(eqx.Module):
    """The same trunk, with which `both_sides` takes one pass."""

    trunk: Trunk
    width: int = eqx.field(static=True)

    def __call__(self, observations: Array) -> Array:
        return self.trunk(observations)

    def layers(self) -> dict[str, Any]:
        return self.trunk.layers()


def in_one_pass(critic: AnyCritic) -> AnyCritic:
    """The same critic, for a loss whose gradient flows through phi(s) and through phi(s').

    Its products are then twice as tall, and the gradient of every layer is one product and no sum of two: a tenth of
    an update of the Nature network. Where no gradient reaches phi(s') two passes cost less.
    """
    return eqx.tree_at(lambda of: of.trunk, critic, OnePass(critic.trunk, critic.trunk.width))


def both_sides(critic: Critic, batch: Batch) -> tuple[Array, Array]:
    """phi(s) and phi(s') of the batch, in two passes unless the critic is `in_one_pass`."""
    if isinstance(critic.trunk, OnePass):
        here, following = jnp.split(critic.features(jnp.concatenate([batch.observations, batch.next_observations])), 2)
        return here, following
    return critic.features(batch.observations), critic.features(batch.next_observations)


def plain(critic: Any) -> Any:
    """The critic as it was before `in_one_pass`: its parameters and nothing else."""
    trunk = getattr(critic, "trunk", None)
    return eqx.tree_at(lambda of: of.trunk, critic, trunk.trunk) if isinstance(trunk, OnePass) else critic
