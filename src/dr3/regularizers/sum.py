"""Several terms at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.regularizers.base import CriticView, Regularizer, check_regularizer, remembered, weigh
from dr3.regularizers.beer import BEER
from dr3.regularizers.dr3 import DR3


@hyperparameters
@dataclass(frozen=True)
class Sum:
    """Several terms, each with its own coefficient, written `dr3:0.03+beer:0.001`."""

    name: ClassVar[str] = "sum"
    TRACED: ClassVar[tuple[str, ...]] = ("terms",)

    coefficient: float = 1.0
    """What all of them are multiplied with."""

    terms: tuple[Regularizer, ...] = (DR3(), BEER())
    """The terms."""

    def check(self) -> None:
        if not isinstance(self.terms, tuple):
            raise UserError(f"terms must be a tuple of regularizers, not {self.terms!r}.")
        for term in self.terms:
            check_regularizer(term)
        names = [term.name for term in self.terms]
        if len(set(names)) < len(names) or len(names) < 2 or self.name in names:
            raise UserError(f"A sum is of two or more different terms, not of {' and '.join(names) or 'none'}.")

    @property
    def reaches_next(self) -> bool:
        return any(getattr(term, "reaches_next", False) for term in self.terms)

    @property
    def remembers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for term in self.terms for name in remembered(term)))

    def __call__(self, backup: Backup) -> Array:
        """Σ coefficient · penalty of the terms: a scalar."""
        return _total([term.coefficient * term(backup) for term in self.terms])

    def weigh(self, backup: Backup, view: CriticView) -> tuple[Array, dict[str, Array]]:
        """The same, with each term's penalty and what it notes, by its name."""
        weighed = [(term, *weigh(term, backup, view)) for term in self.terms]
        notes: dict[str, Array] = {}
        for term, penalty, more in weighed:
            name = term.name.replace("-", "_")
            notes |= {name: penalty, **{f"{name}_{note}": value for note, value in more.items()}}
        return _total([term.coefficient * penalty for term, penalty, _ in weighed]), notes


def _total(penalties: Sequence[Array]) -> Array:
    return jnp.sum(jnp.stack(penalties))
