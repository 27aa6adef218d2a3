"""What training asks of a method.

A method is a frozen dataclass of hyperparameters with pure functions; all that changes is in its learner. To add one:
write a file here in the order hyperparameters, loss, and whatever differs from the shared update and act; add the
class to `METHODS` in this folder's `__init__`; the contract test then holds it to everything below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
from jax import Array
from jax.flatten_util import ravel_pytree

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions
from dr3.regularizers import GradientRegularizer, Gradients, Regularizer

Info = dict[str, Array]


@dataclass(frozen=True)
class Spec:
    """What a network must fit: the shapes of observations and actions."""

    observation_shape: tuple[int, ...]
    action_space: DiscreteActions | ContinuousActions

    @classmethod
    def of(cls, data: Transitions) -> Spec:
        return cls(tuple(data.observations.shape[1:]), data.action_space)


class Method(Protocol):
    """The contract; `tests/contracts/test_methods.py` checks it for every method."""

    @property
    def name(self) -> str: ...
    @property
    def discount(self) -> float: ...
    @property
    def batch_size(self) -> int: ...

    @property
    def synchronise_every(self) -> int | None:
        """Updates between two calls of `synchronise`; None where there is no target network."""
        ...

    def prepare(self, data: Transitions) -> Transitions:
        """The rows and columns this method learns from, or a UserError that says what is missing."""
        ...

    def init(self, spec: Spec, key: Array) -> Any:
        """A fresh learner: a pytree with all that an update changes."""
        ...

    def loss(self, critic: Any, learner: Any, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        """The method's own objective for the critic, the Backup it rests on, and what to log of it."""
        ...

    def update(self, learner: Any, batch: Batch, key: Array, regularizer: Regularizer | None) -> tuple[Any, Array]:
        """One gradient step on loss + coefficient * regularizer(backup): the new learner, and the objective it had."""
        ...

    def start_from(self, learner: Any, critic: Any) -> Any:
        """A fresh learner with another critic in the place of its own, and in that of its target network."""
        ...

    def synchronise(self, learner: Any) -> Any:
        """Move the target network; called after every `synchronise_every` updates."""
        ...

    def critic(self, learner: Any) -> Any:
        """The online critic: what acting and diagnosing need of a learner, and what a checkpoint keeps."""
        ...

    def act(self, critic: Any, observations: Array) -> Array:
        """The learned policy's actions: (n, *shape) -> (n, …)."""
        ...

    def values(self, critic: Any, observations: Array, actions: Array) -> Array:
        """Q(s, a): (n,)."""
        ...

    def features(self, critic: Any, observations: Array, actions: Array) -> Array:
        """phi(s, a): (n, d), or (critics, n, d) of an ensemble."""
        ...


def objective(
    method: Method, regularizer: Regularizer | None, critic: Any, learner: Any, batch: Batch, key: Array
) -> tuple[Array, tuple[Backup, Info]]:
    """L(θ) = L_Alg(θ) + c0 R(θ) (section 4). Without a regularizer it is the base method's, bit for bit."""
    loss, (backup, info) = method.loss(critic, learner, batch, key)
    if regularizer is not None:
        if isinstance(regularizer, GradientRegularizer):
            penalty, notes = regularizer.weigh(backup, lambda: gradients(method, critic, batch, backup))
        else:
            penalty, notes = regularizer(backup), {}
        name = f"losses/{regularizer.name.replace('-', '_')}"
        info = {**info, name: penalty, **{f"{name}_{note}": value for note, value in notes.items()}}
        loss = loss + regularizer.coefficient * penalty
    return loss, (backup, info)


def gradients(method: Method, critic: Any, batch: Batch, backup: Backup) -> Gradients:
    """∇Q(s, a) and ∇Q(s', a') of every row, with respect to all parameters of the critic: for small networks."""

    def of_row(observation: Array, action: Array) -> Array:
        gradient = jax.grad(lambda critic: method.values(critic, observation[None], action[None])[0])(critic)
        return ravel_pytree(gradient)[0]

    of_rows = jax.vmap(of_row)
    return Gradients(of_rows(batch.observations, backup.actions), of_rows(batch.next_observations, backup.next_actions))
