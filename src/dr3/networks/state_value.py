"""V(s), beside critics that are given an action."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jax import Array

from dr3.data.standardisation import Standardisation
from dr3.networks.action_critic import TwinCritics
from dr3.networks.image_encoder import ImageMLP, dense_for
from dr3.networks.linear import Linear
from dr3.networks.mixed import Seen
from dr3.networks.mlp import MLP


class StateValue(eqx.Module):
    """One number for a state: dense layers, after an encoder where it is a picture. (n, *shape) -> (n,)"""

    trunk: MLP | ImageMLP
    head: Linear

    @classmethod
    def create(
        cls,
        shape: Seen,
        hidden: tuple[int, ...],
        *,
        key: Array,
        channels: tuple[int, ...] = (),
        standardisation: Standardisation | None = None,
        strided: bool = False,
    ) -> StateValue:
        of_trunk, of_head = jax.random.split(key)
        how: Any = {"standardisation": standardisation, "strided": strided}
        trunk = dense_for(shape, hidden, channels, key=of_trunk, of_encoder=key, **how)
        return cls(trunk, Linear.small(trunk.width, 1, key=of_head))

    def __call__(self, observations: Array) -> Array:
        return self.head(self.trunk(observations))[:, 0]


class ValuedCritics(TwinCritics):
    """Critics side by side with one V(s), which is trained, saved and restored together with them."""

    value: StateValue
