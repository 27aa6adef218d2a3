"""A critic: features, and the last linear layer that reads values from them."""

from __future__ import annotations

from typing import Any, Protocol

import equinox as eqx
from jax import Array
from jaxtyping import Float, Shaped

from dr3.networks.linear import Linear


class Trunk(Protocol):
    """What a critic asks of the network below its last layer."""

    width: int

    def __call__(self, observations: Shaped[Array, " n *shape"]) -> Float[Array, "n d"]: ...

    def layers(self) -> dict[str, Any]: ...


class Critic(Protocol):
    """What methods with one value per action ask of a critic."""

    @property
    def trunk(self) -> Any: ...

    @property
    def head(self) -> Any: ...

    def features(self, observations: Shaped[Array, " n *shape"]) -> Float[Array, "n d"]: ...

    def values(self, phi: Float[Array, "n d"]) -> Float[Array, "n actions"]: ...

    def layers(self) -> dict[str, Any]: ...


class DiscreteCritic(eqx.Module):
    """Q(s, ·) = W phi(s) + b with one output per action.

    The penultimate features hold no action: phi(s, a) is phi(s), shared by all actions. That is how the paper's Atari
    agents read its phi(s, a); `DR3(per_action=True)` keeps the distinction that the output rows make.
    """

    trunk: Trunk
    head: Linear

    @classmethod
    def create(cls, trunk: Trunk, actions: int, *, key: Array) -> DiscreteCritic:
        return cls(trunk, Linear.fan_in(trunk.width, actions, key=key))

    def features(self, observations: Shaped[Array, " n *shape"]) -> Float[Array, "n d"]:
        """phi(s)."""
        return self.trunk(observations)

    def values(self, phi: Float[Array, "n d"]) -> Float[Array, "n actions"]:
        """Q(s, ·) from features."""
        return self.head(phi)

    def layers(self) -> dict[str, Any]:
        """All layers by name, in forward order; the last one is `head`."""
        return {**self.trunk.layers(), "head": self.head}
