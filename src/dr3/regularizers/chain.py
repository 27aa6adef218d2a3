"""CHAIN: less churn, which is the change of outputs that an update was not about (Tang and Berseth, 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.regularizers.base import CriticView


@hyperparameters
@dataclass(frozen=True)
class Chain:
    """The mean of (Q(s, a) - Q_before(s, a))² on a second batch, Q_before being the critic before the last update.

    The second batch is that of the next update: neither this update nor the last one learns from it. It is the value
    side of the paper's method; the policy's is left out, and the coefficient is fixed, where the paper can adapt it.
    """

    name: ClassVar[str] = "chain"

    coefficient: float = 10.0
    """The weight of the term. One update changes Q by little, and its square by less: it is large for that reason."""

    @property
    def remembers(self) -> tuple[str, ...]:
        return ("previous",)

    def __call__(self, backup: Backup) -> Array:
        raise UserError("chain compares two copies of a critic, and a Backup is of one: it is called by an objective.")

    def weigh(self, backup: Backup, view: CriticView) -> tuple[Array, dict[str, Array]]:
        """The mean squared change."""
        return jnp.mean(view.churn() ** 2), {}
