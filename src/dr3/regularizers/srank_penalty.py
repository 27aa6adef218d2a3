"""The penalty against rank collapse of Kumar et al. (2021), which the paper compares DR3 with (section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.hyperparameters import hyperparameters


@hyperparameters
@dataclass(frozen=True)
class SrankPenalty:
    """σ²max(Φ) - σ²min(Φ), with Φ the features phi(s, a) of a batch, one row each.

    As published: a difference of squared singular values, so that it grows with the batch; features that are scaled
    down lower it, too. σmin is the last of the min(n, d) singular values. The side of s' does not enter, so terminals
    are rows like others.
    """

    name: ClassVar[str] = "srank"

    coefficient: float = 0.001
    """The weight of the term, 0.001 in Kumar et al. (2021)."""

    def __call__(self, backup: Backup) -> Array:
        """The penalty, before its coefficient: a scalar. Critics of an ensemble are averaged."""
        phi = backup.phi if backup.phi.shape[-2] <= backup.phi.shape[-1] else jnp.swapaxes(backup.phi, -1, -2)
        # A squared singular value is ‖Φᵀu‖² with u held fixed: its gradient, 2 u uᵀΦ, is exact where the value is
        # simple, and one of its subgradients where it repeats; through eigh itself it would be 0/0 there.
        fixed = jax.lax.stop_gradient(phi)
        _, vectors = jnp.linalg.eigh(fixed @ jnp.swapaxes(fixed, -1, -2))
        squared = jnp.sum(jnp.einsum("...ij,...ik->...jk", phi, vectors[..., [0, -1]]) ** 2, axis=-2)  # (…, 2)
        return jnp.mean(squared[..., 1] - squared[..., 0])
