"""A method and a regularizer that dr3 does not have. `pip install` this folder, then `dr3 train uniform --help`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

import dr3
from dr3.methods import Bootstrap


@dr3.register
@dataclass(frozen=True)
class ExpectedUniform(dr3.BootstrappedMethod):
    """Evaluate a policy that is greedy, or with some probability uniform: targets r + γ E_a' Q_target(s', a')."""

    name: ClassVar[str] = "uniform"

    uniform: float = 1.0
    """The probability that a' is drawn from all actions alike; otherwise it is the greedy one."""

    def bootstrap(self, online: Array, target: Array, batch: dr3.Batch) -> Bootstrap:
        greedy = jnp.argmax(target, axis=-1)
        values = self.uniform * target.mean(axis=-1) + (1 - self.uniform) * target.max(axis=-1)
        same = self.uniform / target.shape[-1] + (1 - self.uniform) * (greedy == batch.actions)
        return Bootstrap(values, greedy, same)


@dr3.register
@dataclass(frozen=True)
class FeatureGap:
    """How near the features of s' are to those of s: the mean of exp(-‖φ(s, a) - φ(s', a')‖² / scale)."""

    name: ClassVar[str] = "gap"

    coefficient: float = 0.01
    """The weight of the term beside the method's own loss."""

    scale: float = 1.0
    """The squared distance at which the term has fallen to 1/e."""

    @property
    def reaches_next(self) -> bool:
        return True

    def __call__(self, backup: dr3.Backup) -> Array:
        squared = jnp.sum((backup.phi - backup.phi_next) ** 2, axis=-1)  # (…, n)
        return jnp.mean(jnp.exp(-squared / self.scale) * backup.bootstraps)
