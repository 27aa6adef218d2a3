"""What training asks of a regularizer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from numbers import Real
from typing import NamedTuple, Protocol, runtime_checkable

from jax import Array

from dr3.backup import Backup
from dr3.errors import UserError
from dr3.hyperparameters import check_settings


@runtime_checkable
class Regularizer(Protocol):
    """Anything that weighs a Backup: objective = method loss + coefficient * regularizer(backup).

    One whose gradient flows into phi(s', a') may say so with a property `reaches_next`: methods are then faster.
    """

    @property
    def name(self) -> str: ...

    @property
    def coefficient(self) -> float: ...

    def __call__(self, backup: Backup) -> Array: ...


def check_regularizer(regularizer: Regularizer) -> None:
    """Refuse settings that mean nothing. One of a user's own may have a `check()`, and need not be a dataclass."""
    if isinstance(regularizer, type) or not isinstance(regularizer, Regularizer):
        raise UserError(f"A regularizer is None or one such as dr3.DR3(0.03), not {regularizer!r}.")
    if not (isinstance(regularizer.coefficient, Real) and math.isfinite(regularizer.coefficient)):
        raise UserError(f"The coefficient of {regularizer.name} must be a number, not {regularizer.coefficient}.")
    if dataclasses.is_dataclass(regularizer):
        check_settings(regularizer)
    getattr(regularizer, "check", lambda: None)()


class Gradients(NamedTuple):
    """Per-row gradients of Q with respect to all parameters of the online critic."""

    here: Array  # (n, d) ∇Q(s, a)
    following: Array  # (n, d) ∇Q(s', a'), a' the backup's own (the likeliest, where it takes an expectation)


@runtime_checkable
class GradientRegularizer(Regularizer, Protocol):
    """One that may ask for more than features, and has more to log than its penalty."""

    def weigh(self, backup: Backup, gradients: Callable[[], Gradients]) -> tuple[Array, dict[str, Array]]:
        """The penalty, and what else to log of it. `gradients` costs nothing unless it is called."""
        ...
