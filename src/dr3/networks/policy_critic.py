"""A critic with one value per action, and a policy of its own beside it."""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jax import Array
from jaxtyping import Float, Shaped

from dr3.networks.critic import DiscreteCritic, Trunk
from dr3.networks.linear import Linear


class PolicyCritic(eqx.Module):
    """Q(s, ·) with features of its own, a network for log π(·|s) up to a constant, and one for V(s) if it is learned.

    They share no weights. One loss trains all, so that they are saved and restored together.
    """

    trunk: Trunk
    head: Linear
    policy: DiscreteCritic
    value: DiscreteCritic | None = None

    def features(self, observations: Shaped[Array, " n *shape"]) -> Float[Array, "n d"]:
        """phi(s), of the critic."""
        return self.trunk(observations)

    def values(self, phi: Float[Array, "n d"]) -> Float[Array, "n actions"]:
        """Q(s, ·) from features."""
        return self.head(phi)

    def logits(self, observations: Shaped[Array, " n *shape"]) -> Float[Array, "n actions"]:
        """log π(·|s) up to a constant."""
        return self.policy.values(self.policy.features(observations))

    def state_values(self, observations: Shaped[Array, " n *shape"]) -> Float[Array, " n"]:
        """V(s)."""
        assert self.value is not None
        return self.value.values(self.value.features(observations))[:, 0]

    def layers(self) -> dict[str, Any]:
        """The critic's layers by name, in forward order, then the policy's: acting reads those alone."""
        of_policy = {f"policy-{name}": layer for name, layer in self.policy.layers().items()}
        return {**self.trunk.layers(), "head": self.head, **of_policy}
