"""What training asks of a method.

A method is a frozen dataclass of hyperparameters with pure functions; all that changes is in its learner. To add one:
write a file in the order hyperparameters, loss, and whatever differs from the shared update and act, and make the class
known: with `@dr3.register`, or, for dr3 itself, in `METHODS`, whose entries a test holds to all that is below.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import jax
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import Float, Shaped

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.standardisation import Standardisation
from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions
from dr3.envs.parts import Parts
from dr3.errors import UserError
from dr3.networks.kernels.both_sides import plain
from dr3.networks.mixed import Seen
from dr3.regularizers import CriticView, Gradients, Memory, Regularizer, weigh
from dr3.shapes import check_shapes

Info = dict[str, Array]


@dataclass(frozen=True)
class Spec:
    """What a network must fit: the shapes of observations and actions, and their units if they are to be changed."""

    observation_shape: tuple[int, ...]
    action_space: DiscreteActions | ContinuousActions
    standardisation: Standardisation | None = None  # for methods that standardise what they see
    parts: Parts | None = None  # where observations are rows of bytes, with pictures and vectors in them

    @classmethod
    def of(cls, data: Transitions, *, standardise: bool = False) -> Spec:
        """Of a table; with `standardise` also the mean and deviation of each column, from all its rows.

        Args:
            data: The table.
            standardise: Whether to standardise observations.
        """
        columns = Standardisation.of(data.vectors) if standardise else None
        return cls(tuple(data.observations.shape[1:]), data.action_space, columns, data.parts)

    @property
    def seen(self) -> Seen:
        """What networks are made for: the parts of an observation where it has some, else its shape."""
        return self.observation_shape if self.parts is None else self.parts


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
        """The rows and columns this method learns from, or a UserError that says what is missing.

        Args:
            data: The whole table.
        """
        ...

    def init(self, spec: Spec, key: Array) -> Any:
        """A fresh learner: a pytree with all that an update changes.

        Args:
            spec: The shapes of observations and actions.
            key: Draws the initial weights.
        """
        ...

    def loss(self, model: Any, /, learner: Any, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        """The method's own objective for the model's critics, the Backup it rests on, and what to log of it.

        Args:
            model: What gradients are taken of: its critics.
            learner: All that an update changes.
            batch: n rows.
            key: For whatever the loss draws.
        """
        ...

    def update(self, learner: Any, batch: Batch, key: Array, regularizer: Regularizer | None) -> tuple[Any, Array]:
        """One gradient step on loss + coefficient * regularizer(backup): the new learner, and the objective it had.

        Args:
            learner: All that an update changes.
            batch: n rows.
            key: For whatever the update draws.
            regularizer: The term beside the loss; None is the base method.
        """
        ...

    def start_from(self, learner: Any, model: Any, /) -> Any:
        """A fresh learner with another model in the place of its own; its critics are the target network too.

        Args:
            learner: A fresh one.
            model: The model of another learner, of the same shapes.
        """
        ...

    def synchronise(self, learner: Any) -> Any:
        """Move the target network; called after every `synchronise_every` updates.

        Args:
            learner: All that an update changes.
        """
        ...

    def model(self, learner: Any) -> Any:
        """What acting and diagnosing need of a learner, and what a checkpoint keeps: the online critic, with a policy
        beside it (`model.critics`, `model.policy`) where actions are continuous.

        Args:
            learner: All that an update changes.
        """
        ...

    def act(self, model: Any, /, observations: Shaped[Array, " n *shape"]) -> Shaped[Array, " n *action"]:
        """The learned policy's actions. Of those that a mask allows, `dr3.methods.acting.decide` takes the best.

        Args:
            model: What the method calls so: its critic, or critics and policy.
            observations: (n, *shape).
        """
        ...

    def values(
        self, model: Any, /, observations: Shaped[Array, " n *shape"], actions: Shaped[Array, " n *action"]
    ) -> Float[Array, " n"]:
        """Q(s, a).

        Args:
            model: What the method calls so: its critic, or critics and policy.
            observations: (n, *shape).
            actions: (n,) whole numbers, or (n, size).
        """
        ...

    def features(
        self, model: Any, /, observations: Shaped[Array, " n *shape"], actions: Shaped[Array, " n *action"]
    ) -> Float[Array, "*critics n d"]:
        """phi(s, a); an ensemble puts its own axis first.

        Args:
            model: What the method calls so: its critic, or critics and policy.
            observations: (n, *shape).
            actions: (n,) whole numbers, or (n, size).
        """
        ...


def objective(
    method: Method, regularizer: Regularizer | None, model: Any, learner: Any, batch: Batch, key: Array
) -> tuple[Array, tuple[Backup, Info]]:
    """L(θ) = L_Alg(θ) + c0 R(θ) (section 4). Without a regularizer it is the base method's, bit for bit.

    Args:
        method: The method.
        regularizer: The term to add; None adds nothing.
        model: What gradients are taken of: the critic, and the policy beside it where there is one.
        learner: All that the method keeps besides, such as its target network.
        batch: n rows.
        key: For whatever the loss draws.
    """
    loss, (backup, info) = method.loss(model, learner, batch, key)
    check_shapes(f"The backup of {method.name}", batch, backup)
    if regularizer is not None:
        penalty, notes = weigh(regularizer, backup, _view(method, regularizer, model, batch, backup))
        name = f"losses/{regularizer.name.replace('-', '_')}"
        info = {**info, name: penalty, **{f"{name}_{note}": value for note, value in notes.items()}}
        loss = loss + regularizer.coefficient * penalty
    return loss, (backup, info)


def _view(method: Method, regularizer: Regularizer, model: Any, batch: Batch, backup: Backup) -> CriticView:
    """What a term may ask for beside the Backup; what training keeps for it came with the regularizer."""
    memory, second = getattr(regularizer, "memory", Memory()), getattr(regularizer, "second", None)

    def kept(name: str) -> Any:
        if (found := getattr(memory, name)) is None:
            raise UserError(f"{regularizer.name} needs what training keeps for it: it can be had in dr3.train alone.")
        return found

    def churn() -> Array:
        before, rows = jax.lax.stop_gradient(kept("previous")), batch if second is None else second
        now, then = (method.values(one, rows.observations, rows.actions) for one in (plain(model), before))
        return now - then

    return CriticView(
        weights=trained_part(plain(model)),
        gradients=lambda: gradients(method, model, batch, backup),
        initial=lambda: trained_part(kept("initial")),
        churn=churn,
    )


def trained_part(model: Any) -> Any:
    """What an update of the critic moves: of a model with a policy, the critics.

    Args:
        model: What a method's losses are functions of.
    """
    return getattr(model, "critics", model)


def backup_of(method: Any, model: Any, spec: Spec, batch: Batch, key: Array) -> Backup:
    """The method's own Backup of a critic that is its own target network: what can be said of a checkpoint.

    A checkpoint keeps no more of a learner than its model. Terms of the targets that need more are left out: a method
    names the settings that switch them on in `LEARNER_TERMS`.

    Args:
        method: The method that it was trained with.
        model: What a checkpoint holds of one member.
        spec: The shapes of its observations and actions.
        batch: n rows.
        key: Of the method's own chance, such as a policy's samples.

    Returns:
        The Backup of these rows, with the critic as target network.
    """
    unknown = dict.fromkeys(getattr(method, "LEARNER_TERMS", ()), False)
    return _backup_of(dataclasses.replace(method, **unknown), model, spec, batch, key)


@partial(jax.jit, static_argnames="spec")
def _backup_of(method: Method, model: Any, spec: Spec, batch: Batch, key: Array) -> Backup:
    learner = method.start_from(method.init(spec, key), model)
    return method.loss(model, learner, batch, key)[1][0]


def gradients(method: Method, model: Any, batch: Batch, backup: Backup) -> Gradients:
    """∇Q(s, a) and ∇Q(s', a') of every row, with respect to all parameters of the critic: for small networks."""

    def of_row(observation: Array, action: Array) -> Array:
        gradient = jax.grad(lambda model: method.values(model, observation[None], action[None])[0])(model)
        return ravel_pytree(gradient)[0]

    of_rows = jax.vmap(of_row)
    return Gradients(of_rows(batch.observations, backup.actions), of_rows(batch.next_observations, backup.next_actions))
