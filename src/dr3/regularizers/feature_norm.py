"""The control beside DR3: smaller features, whatever their directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.hyperparameters import hyperparameters


@hyperparameters
@dataclass(frozen=True)
class FeatureNorm:
    """½ (‖phi(s, a)‖² + ‖phi(s', a')‖²), the mean over a batch.

    Pair by pair it is at least phi · phi', and equal to it where the two sides are one vector: what DR3 gains over it
    comes from turning the two sides apart, and what it gains alike comes from smaller features.
    """

    name: ClassVar[str] = "norm"

    coefficient: float = 0.03
    """The weight of the term beside the method's own loss; comparable with DR3's c0."""

    mask_terminals: bool = True
    """Leave out the pairs of backups that end, as DR3 does."""

    @property
    def reaches_next(self) -> bool:
        return True

    def __call__(self, backup: Backup) -> Array:
        """The penalty, before its coefficient: a scalar. Critics of an ensemble are averaged."""
        halves = 0.5 * jnp.sum(backup.phi**2 + backup.phi_next**2, axis=-1)  # (…, n)
        return jnp.mean(halves * backup.bootstraps if self.mask_terminals else halves)
