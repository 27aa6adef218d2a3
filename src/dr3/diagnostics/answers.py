"""What a critic says about a set of transitions: the one thing that every instrument reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from dr3.data.transitions import DiscreteActions, Transitions
from dr3.instruments import Grams
from dr3.instruments.gradients import gradient_products
from dr3.methods import SARSA, TD, Method, Supervised

LOGGED = (SARSA, TD, Supervised)  # the methods that estimate the logging policy's value
SPECTRUM_SIZE = 128  # rows of the eigenvalue problem, whose cost is their number cubed


@dataclass(frozen=True)
class Answers:
    """Both sides of n backups as a critic sees them, in float64; values are None for a critic that gives only features.

    The a' is the one that the critic would bootstrap from. `rows_per_action`: the last layer has a row for each action,
    and the features hold no action.
    """

    phi: NDArray[np.float64]  # (…, n, d), an ensemble's axis first
    phi_next: NDArray[np.float64]  # (…, n, d)
    values: NDArray[np.float64] | None  # (n,) Q(s, a)
    next_values: NDArray[np.float64] | None  # (n,) Q(s', a')
    rewards: NDArray[np.float64]  # (n,)
    discounts: NDArray[np.float64]  # (n,) γ where s' bootstraps, 0 at terminals
    actions: NDArray[Any]
    next_actions: NDArray[Any]
    rows_per_action: bool
    known: NDArray[np.bool_] | None = None  # (n,) False where s' has no a', though it bootstraps; None: nowhere


def next_actions_of(method: Method, critic: Any, data: Transitions) -> NDArray[Any]:
    """The backup's a': the logged one where a method estimates the logging policy's value, else the learned one.

    Where none was logged, TD-learning's is the likeliest one, as in its Backup. (SARSA has no such rows, and supervised
    regression marks them.)
    """
    if not isinstance(method, LOGGED):
        return np.asarray(act(method, critic, jnp.asarray(data.next_observations)))
    if isinstance(method, TD) and data.next_behavior is not None:
        return np.where(data.next_action_known, data.next_actions, data.next_behavior.argmax(axis=-1))
    return data.next_actions


def discounts_of(method: Method, data: Transitions) -> NDArray[np.float64]:
    """γ where s' bootstraps, 0 at terminals: (n,)."""
    return float(method.discount) * (~data.terminals).astype(np.float64)


def answers_of(method: Method, critic: Any, data: Transitions) -> Answers:
    """Of a critic that was trained here, on rows that `method.prepare` has passed."""
    following = next_actions_of(method, critic, data)
    here = _look(method, critic, jnp.asarray(data.observations), _typed(data.actions))
    there = _look(method, critic, jnp.asarray(data.next_observations), _typed(following))
    phi, values, phi_next, next_values = (np.asarray(array, np.float64) for array in (*here, *there))
    return Answers(
        phi=phi,
        phi_next=phi_next,
        values=values,
        next_values=next_values,
        rewards=data.rewards.astype(np.float64),
        discounts=discounts_of(method, data),
        actions=data.actions,
        next_actions=following,
        rows_per_action=isinstance(data.action_space, DiscreteActions),
        known=data.next_action_known | data.terminals if isinstance(method, LOGGED) else None,
    )


def parameter_grams(method: Method, critic: Any, data: Transitions) -> Grams:
    """Of the gradients with respect to all parameters."""
    following = _typed(next_actions_of(method, critic, data))
    same, cross = _products(
        method,
        critic,
        (jnp.asarray(data.observations), _typed(data.actions)),
        (jnp.asarray(data.next_observations), following),
    )
    return Grams(np.asarray(same, np.float64), np.asarray(cross, np.float64), discounts_of(method, data))


@jax.jit
def _products(method: Method, critic: Any, here: Any, there: Any) -> tuple[jax.Array, jax.Array]:
    return gradient_products(lambda critic, inputs: method.values(critic, *inputs), critic, here, there)


def _typed(actions: NDArray[Any]) -> jax.Array:
    return jnp.asarray(actions, jnp.int32 if np.issubdtype(actions.dtype, np.integer) else jnp.float32)


@jax.jit
def act(method: Method, critic: Any, observations: jax.Array) -> jax.Array:
    return method.act(critic, observations)


@jax.jit
def _look(method: Method, critic: Any, observations: jax.Array, actions: jax.Array) -> tuple[jax.Array, jax.Array]:
    return method.features(critic, observations, actions), method.values(critic, observations, actions)
