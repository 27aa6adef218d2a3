"""Terms on the critic's weights: the controls beside those on its features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.regularizers.base import CriticView


@hyperparameters
@dataclass(frozen=True)
class L2:
    """Σ w² over all parameters of the critic: weight decay as a term of the loss.

    Adam divides its gradient by the root of the second moment as it does all others; `--optimizer adamw` takes its
    decay after that division (Loshchilov and Hutter, 2019), which is another thing.
    """

    name: ClassVar[str] = "l2"

    coefficient: float = 1e-5
    """The weight of the term beside the method's own loss."""

    def __call__(self, backup: Backup) -> Array:
        raise UserError("l2 is about weights, of which a Backup holds none: it is called by an objective.")

    def weigh(self, backup: Backup, view: CriticView) -> tuple[Array, dict[str, Array]]:
        """The sum of squares."""
        return _squares(view.weights), {}


@hyperparameters
@dataclass(frozen=True)
class L2Init:
    """Σ (w - w₀)² over all parameters of the critic, w₀ being those it began with (Kumar, Marklund and Van Roy, 2023).

    It keeps weights near where learning was easy, and small by the way. A member that starts from another run's critic
    stays near that one.
    """

    name: ClassVar[str] = "l2-init"

    coefficient: float = 1e-5
    """The weight of the term beside the method's own loss."""

    @property
    def remembers(self) -> tuple[str, ...]:
        return ("initial",)

    def __call__(self, backup: Backup) -> Array:
        raise UserError("l2-init is about weights, of which a Backup holds none: it is called by an objective.")

    def weigh(self, backup: Backup, view: CriticView) -> tuple[Array, dict[str, Array]]:
        """The sum of squared distances."""
        return _squares(jax.tree.map(jnp.subtract, view.weights, view.initial())), {}


def _squares(tree: Any) -> Array:
    return jnp.sum(jnp.stack([jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)]))
