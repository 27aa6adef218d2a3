"""What training asks of a regularizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jax import Array

from dr3.backup import Backup
from dr3.errors import UserError
from dr3.hyperparameters import within


@runtime_checkable
class Regularizer(Protocol):
    """Anything that weighs a Backup: objective = method loss + coefficient * regularizer(backup).

    One whose gradient flows into phi(s', a') may say so with a property `reaches_next`: methods are then faster.
    """

    @property
    def name(self) -> str: ...

    @property
    def coefficient(self) -> float: ...

    def __call__(self, backup: Backup) -> Array:
        """The penalty, before its coefficient: a scalar.

        Args:
            backup: Both sides of a batch.
        """
        ...


def check_regularizer(regularizer: Regularizer) -> None:
    """Refuse what is no regularizer. One of a user's own need not be a dataclass that checks its settings itself.

    Args:
        regularizer: Any object that ought to be one.
    """
    if isinstance(regularizer, type) or not isinstance(regularizer, Regularizer):
        raise UserError(f"A regularizer is None or one such as dr3.DR3(0.03), not {regularizer!r}.")
    if not isinstance(regularizer.coefficient, Real):
        raise UserError(f"The coefficient of {regularizer.name} must be a number, not {regularizer.coefficient!r}.")
    within(f"the coefficient of {regularizer.name}", float(regularizer.coefficient), 0)


class Gradients(NamedTuple):
    """Per-row gradients of Q with respect to all parameters of the online critic."""

    here: Array  # (n, d) ∇Q(s, a)
    following: Array  # (n, d) ∇Q(s', a'), a' the backup's own (the likeliest, where it takes an expectation)


class Memory(NamedTuple):
    """What a member keeps of its past for a regularizer that says so in `remembers`; None where it is not kept.

    It is part of what is saved, so that resuming is exact.
    """

    initial: Any = None  # the critic before the first update
    previous: Any = None  # the critic before the last update


@dataclass(frozen=True)
class CriticView:
    """What a term may look at beside the Backup. Whatever is a function costs nothing unless it is called."""

    weights: Any  # all parameters of the online critic that the update moves
    gradients: Callable[[], Gradients]
    initial: Callable[[], Any]  # the same parameters, before the first update
    churn: Callable[[], Array]  # (n,) Q(s, a) - Q(s, a) before the last update, on a second batch


@runtime_checkable
class WideRegularizer(Regularizer, Protocol):
    """One that may ask for more than the Backup, and has more to log than its penalty.

    It may say with a property `remembers` which fields of `Memory` training has to keep for it.
    """

    def weigh(self, backup: Backup, view: CriticView) -> tuple[Array, dict[str, Array]]:
        """The penalty, and what else to log of it.

        Args:
            backup: Both sides of a batch.
            view: What else there is to look at.
        """
        ...


@dataclass(frozen=True)
class Remembering:
    """A regularizer, and what training has kept for it until this update."""

    regularizer: Regularizer
    memory: Memory
    second: Any = None  # a second batch, for `CriticView.churn`

    @property
    def name(self) -> str:
        return self.regularizer.name

    @property
    def coefficient(self) -> float:
        return self.regularizer.coefficient

    @property
    def reaches_next(self) -> bool:
        return getattr(self.regularizer, "reaches_next", False)

    def __call__(self, backup: Backup) -> Array:
        return self.regularizer(backup)


def remembered(regularizer: Regularizer | None) -> tuple[str, ...]:
    """The fields of `Memory` that a regularizer asks for.

    Args:
        regularizer: One, or None.
    """
    return tuple(getattr(regularizer, "remembers", ()))


def weigh(regularizer: Regularizer, backup: Backup, view: CriticView) -> tuple[Array, dict[str, Array]]:
    """The penalty of any regularizer, and what else to log of it.

    Args:
        regularizer: The term.
        backup: Both sides of a batch.
        view: What else there is to look at.
    """
    if isinstance(regularizer, Remembering):
        return weigh(regularizer.regularizer, backup, view)
    return regularizer.weigh(backup, view) if isinstance(regularizer, WideRegularizer) else (regularizer(backup), {})
