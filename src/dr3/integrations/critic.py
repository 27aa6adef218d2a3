"""What the doctor needs to know of a critic that was trained elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.backup import Backup
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.errors import UserError

Function = Callable[..., Any]


@dataclass(frozen=True)
class OutsideCritic:
    """Features, and as much of the rest as there is. Functions take numpy arrays; what they return may be any array."""

    features: Function  # (s, a) -> (n, d)
    weight: NDArray[Any] | None = None  # the last layer: (actions, d), or (d,) for a critic that is given the action
    bias: NDArray[Any] | None = None
    values: Function | None = None  # (s, a) -> (n,), where the last layer does not say it
    policy: Function | None = None  # s -> a, for the a' of the backup

    @property
    def knows_values(self) -> bool:
        return self.values is not None or self.weight is not None

    def backup(self, data: Transitions, discount: float) -> Backup:
        """Both sides of logged transitions, the critic being its own target network; values are NaN where it has none.

        The a' of each backup is the policy's; without one the greedy action of the last layer; without that the logged
        one, and rows that have none are left out.
        """
        discrete = isinstance(data.action_space, DiscreteActions)
        rows_per_action = discrete and self.weight is not None and np.ndim(self.weight) == 2 and len(self.weight) > 1
        if self.policy is not None:
            following = np.asarray(to_numpy(self.policy(np.asarray(data.next_observations))))
        elif rows_per_action:
            phi = self._features(np.asarray(data.next_observations), data.next_actions)
            self._check_weight(phi)
            values = phi @ np.transpose(self.weight) + (0 if self.bias is None else self.bias)
            if data.next_masks is not None:
                values = np.where(data.next_masks, values, -np.inf)
            following = np.argmax(values, axis=-1)
        else:
            known = data.next_action_known | data.terminals
            if not known.any():
                raise UserError(f"{data.name} holds no next actions; give a policy that says which a' is backed up.")
            data = data.rows(np.flatnonzero(known))
            following = data.next_actions
        observations, next_observations = np.asarray(data.observations), np.asarray(data.next_observations)
        phi = self._features(observations, data.actions)
        phi_next = self._features(next_observations, following)
        next_values = self._values(next_observations, following, phi_next)
        bootstraps = (~data.terminals).astype(np.float64)
        as_inputs = (len(data), 1) if discrete and not rows_per_action else data.actions.shape
        columns: dict[str, Any] = {
            "phi": phi,
            "phi_next": phi_next,
            "values": self._values(observations, data.actions, phi),
            "next_values": next_values,
            "targets": data.rewards + discount * bootstraps * next_values,
            "bootstraps": bootstraps,
            "discounts": discount * bootstraps,
            "actions": data.actions.reshape(as_inputs),
            "next_actions": following.reshape(as_inputs),
            "same_output": (following == data.actions if rows_per_action else np.ones(len(data))).astype(np.float64),
        }
        columns |= {"rewards": np.asarray(data.rewards, np.float64), "readout": self._readout(data.actions, phi)}
        return Backup(**columns)

    def _features(self, observations: NDArray[Any], actions: NDArray[Any]) -> NDArray[np.float64]:
        phi = to_numpy(self.features(observations, actions))
        if phi.ndim != 2 or len(phi) != len(observations):
            raise UserError(
                f"features must return one row for each of the {len(observations)} pairs, not the shape {phi.shape}."
            )
        return phi.astype(np.float64)

    def _values(self, observations: NDArray[Any], actions: NDArray[Any], phi: NDArray[Any]) -> NDArray[np.float64]:
        if self.values is not None:
            values = to_numpy(self.values(observations, actions)).astype(np.float64)
            return values.reshape(len(observations))
        if self.weight is None:
            return np.full(len(phi), np.nan)
        self._check_weight(phi)
        weight = np.asarray(self.weight, np.float64)
        bias = np.zeros(len(weight) if weight.ndim == 2 else ()) if self.bias is None else np.asarray(self.bias)
        if weight.ndim == 2 and len(weight) > 1:
            chosen = np.asarray(actions, np.int64)
            return (phi * weight[chosen]).sum(-1) + bias[chosen]
        return phi @ weight.reshape(-1) + bias.reshape(-1)

    def _readout(self, actions: NDArray[Any], phi: NDArray[Any]) -> Any:
        """The last layer's row that each value is read with; None where the last layer is not known."""
        if self.weight is None:
            return None
        weight = np.asarray(self.weight, np.float64).reshape(-1, phi.shape[1])
        return weight[np.asarray(actions, np.int64)] if len(weight) > 1 else np.broadcast_to(weight, phi.shape)

    def _check_weight(self, phi: NDArray[Any]) -> None:
        reads = np.asarray(self.weight).shape[-1]
        if reads != phi.shape[1]:
            raise UserError(
                f"The last layer reads {reads} features, and there are {phi.shape[1]}; its weight is (actions, "
                "features), as PyTorch stores it."
            )


def to_numpy(array: Any) -> NDArray[Any]:
    """Of any framework: a PyTorch tensor leaves its graph and its device first."""
    return np.asarray(array.detach().cpu().numpy() if hasattr(array, "detach") else array)


def last_layer_arrays(layer: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Weight as (outputs, d) and bias, from an array, a pair of arrays, or a layer that has both as attributes."""
    if isinstance(layer, tuple | list):
        weight, bias = layer
    elif hasattr(layer, "weight"):
        weight, bias = layer.weight, getattr(layer, "bias", None)
    else:
        weight, bias = layer, None
    return to_numpy(weight), None if bias is None else to_numpy(bias)
