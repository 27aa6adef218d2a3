"""What the doctor needs to know of a critic that was trained elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.transitions import DiscreteActions, Transitions
from dr3.diagnostics.answers import Answers
from dr3.errors import UserError

Function = Callable[..., Any]


@dataclass(frozen=True)
class Critic:
    """Features, and as much of the rest as there is. Functions take numpy arrays; what they return may be any array."""

    features: Function  # (s, a) -> (n, d)
    weight: NDArray[Any] | None = None  # the last layer: (actions, d), or (d,) for a critic that is given the action
    bias: NDArray[Any] | None = None
    values: Function | None = None  # (s, a) -> (n,), where the last layer does not say it
    policy: Function | None = None  # s -> a, for the a' of the backup

    def answers(self, data: Transitions, discount: float) -> Answers:
        """What it says about logged transitions, as the instruments read it.

        The a' of each backup is the policy's; without one the greedy action of the last layer; without that the logged
        one, and rows that have none are left out.
        """
        discrete = isinstance(data.action_space, DiscreteActions)
        rows_per_action = discrete and self.weight is not None and np.ndim(self.weight) == 2
        if self.policy is not None:
            following = np.asarray(to_numpy(self.policy(np.asarray(data.next_observations))))
        elif rows_per_action:
            phi = self._features(np.asarray(data.next_observations), data.next_actions)
            self._check_weight(phi)
            following = np.argmax(phi @ np.transpose(self.weight) + (0 if self.bias is None else self.bias), axis=-1)
        else:
            known = data.next_action_known | data.terminals
            if not known.any():
                raise UserError(f"{data.name} holds no next actions; give a policy that says which a' is backed up.")
            data = data.rows(np.flatnonzero(known))
            following = data.next_actions
        observations, next_observations = np.asarray(data.observations), np.asarray(data.next_observations)
        phi = self._features(observations, data.actions)
        phi_next = self._features(next_observations, following)
        return Answers(
            phi=phi,
            phi_next=phi_next,
            values=self._values(observations, data.actions, phi),
            next_values=self._values(next_observations, following, phi_next),
            rewards=data.rewards.astype(np.float64),
            discounts=discount * (~data.terminals).astype(np.float64),
            actions=data.actions,
            next_actions=following,
            rows_per_action=rows_per_action,
        )

    def _features(self, observations: NDArray[Any], actions: NDArray[Any]) -> NDArray[np.float64]:
        phi = to_numpy(self.features(observations, actions))
        if phi.ndim != 2 or len(phi) != len(observations):
            raise UserError(
                f"features must return one row for each of the {len(observations)} pairs, not the shape {phi.shape}."
            )
        return phi.astype(np.float64)

    def _values(self, observations: NDArray[Any], actions: NDArray[Any], phi: NDArray[Any]) -> NDArray[Any] | None:
        if self.values is not None:
            values = to_numpy(self.values(observations, actions)).astype(np.float64)
            return values.reshape(len(observations))
        if self.weight is None:
            return None
        self._check_weight(phi)
        weight = np.asarray(self.weight, np.float64)
        bias = np.zeros(len(weight) if weight.ndim == 2 else ()) if self.bias is None else np.asarray(self.bias)
        if weight.ndim == 2 and len(weight) > 1:
            chosen = np.asarray(actions, np.int64)
            return (phi * weight[chosen]).sum(-1) + bias[chosen]
        return phi @ weight.reshape(-1) + bias.reshape(-1)

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
