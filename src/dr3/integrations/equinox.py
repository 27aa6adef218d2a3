"""Equinox modules for the doctor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from dr3.errors import UserError
from dr3.integrations.critic import OutsideCritic, last_layer_arrays


def module_critic(
    module: Any, last_layer: Callable[[Any], Any], values: Callable | None, policy: Callable | None
) -> OutsideCritic:
    """A module of one example whose features are what its last linear layer is given.

    `last_layer` points at that layer, as in `eqx.tree_at`: `lambda module: module.layers[-1]`. The same module with the
    identity in its place returns the features. It is called with s where actions are discrete, else with (s, a).
    """
    last = last_layer(module)
    if not hasattr(last, "weight"):
        raise UserError(f"last_layer must point at a linear layer of the module, not at a {type(last).__name__}.")
    headless = eqx.tree_at(last_layer, module, eqx.nn.Identity())

    def features(observations: np.ndarray, actions: np.ndarray) -> Array:
        inputs = [observations] if np.issubdtype(actions.dtype, np.integer) else [observations, actions]
        return jax.vmap(headless)(*inputs)

    return OutsideCritic(features, *last_layer_arrays(last), values, policy)
