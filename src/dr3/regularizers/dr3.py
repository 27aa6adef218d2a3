"""DR3: the explicit regularizer of the paper (Eq. 7, "Explicit DR3 regularizer")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.hyperparameters import hyperparameters


@hyperparameters
@dataclass(frozen=True)
class DR3:
    """c0 * Σ phi(s, a) · phi(s', a') over the backups of a batch, with every choice that public codings differ in.

    Two of the eight choices are the critic's: which layer the features are (the penultimate one), and whether they
    hold the action (for a head with one output per action they do not). A third, online parameters on both sides, is
    what a `Backup` is, and a fourth, which a', is the backup's own. The other four, and the exact last-layer form for
    discrete heads, are fields here.
    """

    name: ClassVar[str] = "dr3"

    coefficient: float = 0.03
    """c0, the weight of the term beside the method's own loss."""

    stop_gradient: Literal["next"] | None = None
    """`next` passes no gradient into phi(s', a'): the paper's Δ' (appendix A.5)."""

    reduction: Literal["mean", "sum"] = "mean"
    """Over the batch. Eq. 7 prints a sum; every published c0 belongs to the mean."""

    absolute: bool = False
    """Penalise |phi · phi'|, as the authors' Atari agent does. No difference where features are ReLU outputs."""

    mask_terminals: bool = True
    """Leave out backups that end: there s' does not enter the target, and a log may hold the next episode's state."""

    per_action: bool = False
    """For heads with one output per action: the exact last-layer gradient product, 1[a = a'] phi(s) · phi(s')."""

    @classmethod
    def atari_agent(cls, coefficient: float = 0.1) -> DR3:
        """The choices of the authors' released Atari agent: mean of |phi(s) · phi(s')|, terminals not masked.

        Args:
            coefficient: c0.
        """
        return cls(coefficient, absolute=True, mask_terminals=False)

    @property
    def reaches_next(self) -> bool:
        return self.stop_gradient is None

    def __call__(self, backup: Backup) -> Array:
        """The penalty, before its coefficient: a scalar. Critics of an ensemble are averaged after the product."""
        phi_next = jax.lax.stop_gradient(backup.phi_next) if self.stop_gradient == "next" else backup.phi_next
        products = jnp.sum(backup.phi * phi_next, axis=-1)  # (…, n)
        if self.absolute:
            products = jnp.abs(products)
        if self.mask_terminals:
            products = products * backup.bootstraps
        if self.per_action:
            products = products * backup.same_output
        over_batch = jnp.mean if self.reduction == "mean" else jnp.sum
        return jnp.mean(over_batch(products, axis=-1))
