"""One pass over [s; s'] in the place of two."""

from __future__ import annotations

from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from dr3.data.batch import Batch
from dr3.networks.critic import Critic, Trunk

AnyCritic = TypeVar("AnyCritic", bound=Critic)


class AtOnce(eqx.Module):
    """A trunk that has looked at both sides of a batch already, and looks again only at something else."""

    trunk: Trunk
    sides: tuple[Array, Array]  # observations, next observations
    phi: tuple[Array, Array]  # their features
    width: int = eqx.field(static=True)

    def __call__(self, observations: Array) -> Array:
        for side, phi in zip(self.sides, self.phi, strict=True):
            if observations is side:
                return phi
        return self.trunk(observations)

    def layers(self) -> dict[str, Any]:
        return self.trunk.layers()


def at_once(critic: AnyCritic, batch: Batch) -> AnyCritic:
    """The same critic, for one loss on this batch whose gradient flows through phi(s) and through phi(s').

    Its products are then twice as tall, and the gradient of every layer is one product and no sum of two: a tenth of
    an update of the Nature network. Where no gradient reaches phi(s') two passes cost less.
    """
    sides = batch.observations, batch.next_observations
    here, following = jnp.split(critic.trunk(jnp.concatenate(sides)), 2)
    return eqx.tree_at(lambda of: of.trunk, critic, AtOnce(critic.trunk, sides, (here, following), critic.trunk.width))
