"""All that a continuous method's checkpoint keeps: critics and a policy, for actions in some range."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jax import Array

from dr3.data.standardisation import Standardisation
from dr3.networks.action_critic import TwinCritics
from dr3.networks.gaussian_policy import GaussianPolicy
from dr3.networks.mixed import Seen


class ActorCritic(eqx.Module):
    """Networks that know only actions between -1 and 1, and the range that the world's actions have.

    Densities and entropies are those of actions in [-1, 1], whatever the range: so the entropy a temperature aims at,
    and CQL's uniform density ½ per dimension, do not depend on the units in which a log counts its torques.
    """

    critics: TwinCritics
    policy: GaussianPolicy
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        shape: Seen,
        actions: int,
        *,
        hidden: tuple[int, ...],
        policy_hidden: tuple[int, ...],
        low: float,
        high: float,
        key: Array,
        channels: tuple[int, ...] = (),
        layer_norm: bool = False,
        standardisation: Standardisation | None = None,
        strided: bool = False,
    ) -> ActorCritic:
        """Where observations are pictures, critics and policy each have an encoder with these channels.

        `layer_norm` is for the critics' layers.
        """
        of_critics, of_policy = jax.random.split(key)
        both: dict[str, Any] = {"channels": channels, "standardisation": standardisation, "strided": strided}
        critics = TwinCritics.create(shape, actions, hidden, key=of_critics, layer_norm=layer_norm, **both)
        policy = GaussianPolicy.create(shape, actions, policy_hidden, key=of_policy, **both)
        return cls(critics, policy, low, high)

    def to_unit(self, actions: Array) -> Array:
        """From the world's range to [-1, 1]."""
        return (actions - 0.5 * (self.high + self.low)) / (0.5 * (self.high - self.low))

    def to_range(self, unit: Array) -> Array:
        """From [-1, 1] to the world's range."""
        return 0.5 * (self.high + self.low) + 0.5 * (self.high - self.low) * unit

    def layers(self) -> dict[str, Any]:
        """The policy's layers, since acting reads no others: re-initialising a critic's would change no action."""
        return self.policy.layers()
