"""Flax (linen) modules for the doctor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import Array

from dr3.errors import UserError
from dr3.integrations.critic import OutsideCritic, last_layer_arrays


def module_critic(
    module: Any, variables: Any, layer: str | None, last_layer: Any, values: Callable | None, policy: Callable | None
) -> OutsideCritic:
    """A module whose features are the output of its submodule `layer`, named as in its parameters: `Dense_1`.

    A ReLU is no submodule of its own in most Flax code: then wrap what makes the features in a module or a method, or
    give a function. `last_layer` may be a submodule's name too; its kernel (d, actions) is turned round.
    """
    if layer is None:
        raise UserError("Name the submodule whose output are the features: layer=….")
    if isinstance(last_layer, str):
        if last_layer not in variables["params"]:
            raise UserError(f"The parameters have no {last_layer!r}; they have {', '.join(variables['params'])}.")
        found = variables["params"][last_layer]
        last_layer = (np.asarray(found["kernel"]).T, found.get("bias"))
    weight, bias = (None, None) if last_layer is None else last_layer_arrays(last_layer)

    def features(observations: np.ndarray, actions: np.ndarray) -> Array:
        inputs = [observations] if np.issubdtype(actions.dtype, np.integer) else [observations, actions]
        _, caught = module.apply(
            variables, *inputs, capture_intermediates=lambda submodule, _: submodule.name == layer, mutable=True
        )
        if layer not in caught.get("intermediates", {}):
            raise UserError(f"No submodule {layer!r} ran in the forward pass.")
        return caught["intermediates"][layer]["__call__"][0]

    return OutsideCritic(features, weight, bias, values, policy)
