"""`dr3.diagnose`: the doctor for a critic that was trained elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from dr3.data.transitions import Transitions
from dr3.diagnostics.checks import Thresholds
from dr3.diagnostics.health import Health, Judged, judge
from dr3.diagnostics.measure import Measurements, bounds_of, measure_backup
from dr3.errors import UserError
from dr3.integrations.critic import Function, OutsideCritic, last_layer_arrays
from dr3.training.metrics import probe_of


def diagnose(
    features: Any,
    data: Transitions,
    *,
    last_layer: Any = None,
    values: Function | None = None,
    policy: Function | None = None,
    layer: str | None = None,
    discount: float = 0.99,
    horizon: int | None = None,
    arrays: Literal["numpy", "torch"] = "numpy",
    thresholds: Thresholds | None = None,
) -> Health:
    """What is wrong with any critic: `print(dr3.diagnose(features, data))`.

    `features` is a function (s, a) -> (n, d) of numpy arrays, in numpy or JAX (in PyTorch with `arrays="torch"`); or a
    `torch.nn.Module` with the name of its penultimate `layer`; a d3rlpy algorithm; an Equinox module with `last_layer`
    a function that points at its last layer; a pair (Flax module, variables) with `layer`. A mapping {step: any of
    these} is a history: signs of growth need one.

    The more is given, the more is said: `last_layer` (the weight (actions, d) or (d,), a pair (weight, bias), or a
    layer's name or object) or `values` (s, a) -> (n,) for everything about Q; `policy` s -> a' for the backup's own a',
    else the greedy or the logged one. `horizon` bounds returns by an episode's length.

    Args:
        features: φ: a function (s, a) -> (n, d), a network of another library, or {step: one of these}.
        data: The table to look at.
        last_layer: What reads Q from the features: weights, (weight, bias), or a layer's name or object.
        values: Q: a function (s, a) -> (n,).
        policy: a' of the backup: a function of s'; None is the greedy or the logged one.
        layer: The name of the layer whose outputs are the features.
        discount: γ.
        horizon: The longest episode, in steps.
        arrays: What `features` takes: "numpy" or "torch".
        thresholds: From where on a number counts as a finding.
    """
    history = features if isinstance(features, Mapping) else {0: features}
    if not history:
        raise UserError("diagnose was given no critic.")
    probe = probe_of(data)
    bounds = bounds_of(data, discount, horizon)
    rows = []
    for step in sorted(history):
        critic = _critic(history[step], layer, last_layer, values, policy, arrays)
        rows.append(measure_backup(critic.backup(probe, discount), bounds if critic.knows_values else None))
    columns = {name: np.array([[row[name] for row in rows]]) for name in rows[0]}
    measured = Measurements(np.array(sorted(history), np.int64), columns, len(probe))
    return judge(measured, [Judged("critic")], thresholds or Thresholds())


def _critic(
    features: Any, layer: str | None, last_layer: Any, values: Function | None, policy: Function | None, arrays: str
) -> OutsideCritic:
    """The adapter for whatever it is. Frameworks are recognised by the names of their classes: none is imported."""
    if _is_a(features, "d3rlpy.algos"):
        from dr3.integrations.d3rlpy import critic_of

        return critic_of(features)
    if _is_a(features, "torch.nn.modules.module"):
        from dr3.integrations.torch import module_critic

        return module_critic(features, layer, last_layer, values, policy)
    if isinstance(features, tuple) and len(features) == 2 and _is_a(features[0], "flax.linen.module"):
        from dr3.integrations.flax import module_critic

        return module_critic(*features, layer, last_layer, values, policy)
    if _is_a(features, "equinox") and callable(last_layer):
        from dr3.integrations.equinox import module_critic

        return module_critic(features, last_layer, values, policy)
    if not callable(features):
        raise UserError(f"features must be a function (s, a) -> (n, d) or a module, not a {type(features).__name__}.")
    if arrays == "torch":
        from dr3.integrations.torch import of_numpy

        features = of_numpy(features)
        values, policy = (None if function is None else of_numpy(function) for function in (values, policy))
    weight, bias = (None, None) if last_layer is None else last_layer_arrays(last_layer)
    return OutsideCritic(features, weight, bias, values, policy)


def _is_a(thing: Any, module: str) -> bool:
    return any(cls.__module__.startswith(module) for cls in type(thing).__mro__)
