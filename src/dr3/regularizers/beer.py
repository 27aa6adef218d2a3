"""BEER: the Bellman equation's own bound on how alike φ(s, a) and φ(s', a') may be (He et al., ICLR 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters

SMALLEST = 1e-6  # ReLU features can all be 0: a length up to this has no direction


@hyperparameters
@dataclass(frozen=True)
class BEER:
    """relu(cos(φ, φ') - bound), bound = (‖φ‖² + γ²‖φ'‖² - r²/‖w‖²) / (2γ‖φ‖‖φ'‖), the mean over a batch.

    With Q = w·φ the Bellman equation says w·(φ - γφ') = r, so that r² ≤ ‖w‖² ‖φ - γφ'‖²: a cosine above the bound
    cannot belong to it ("Adaptive Regularization of Representation Rank as an Implicit Constraint of Bellman
    Equation"). The bound is a constant; gradients flow into both features. With r = 0 it is at least 1, whatever the
    features, and the term never acts: `losses/beer_can_act` is the share of pairs whose bound is below 1, and
    `losses/beer_acts` the share whose cosine is above it.

    What differs from the paper: both features are the online critic's, as everywhere here. A head with one output for
    each action has several w: that of a counts. The inequality is exact where a' = a, and `per_action` keeps to those.
    """

    name: ClassVar[str] = "beer"

    coefficient: float = 0.001
    """The weight of the term, β in the paper."""

    per_action: bool = False
    """For heads with one output per action: only pairs that read the same row of the last layer."""

    @property
    def reaches_next(self) -> bool:
        return True

    def __call__(self, backup: Backup) -> Array:
        """The penalty, before its coefficient: a scalar. Critics of an ensemble are averaged."""
        return self.weigh(backup, None)[0]

    def weigh(self, backup: Backup, view: Any) -> tuple[Array, dict[str, Array]]:
        """The penalty, and on which share of the pairs it acts, or could."""
        if backup.rewards is None or backup.readout is None:
            raise UserError("beer needs a Backup with rewards and with the last layer's weights; this one has none.")
        here, following = _length(backup.phi), _length(backup.phi_next)
        # γ is 0 where s' does not enter: such pairs do not count.
        alive = (here > SMALLEST) & (following > SMALLEST)
        counts = backup.bootstraps * (backup.discounts > 0) * alive
        if self.per_action:
            counts = counts * backup.same_output
        safe = jnp.where(alive, here * following, 1.0)
        cosine = jnp.sum(backup.phi * backup.phi_next, axis=-1) / safe
        discounts = jnp.where(backup.discounts > 0, backup.discounts, 1.0)
        slack = backup.rewards**2 / jnp.maximum(jnp.sum(backup.readout**2, axis=-1), SMALLEST**2)
        bound = jax.lax.stop_gradient((here**2 + (discounts * following) ** 2 - slack) / (2 * discounts * safe))
        pairs = jnp.maximum(jnp.sum(counts, axis=-1), 1.0)

        def share(holds: Array) -> Array:
            return jnp.mean(jnp.sum(counts * holds, axis=-1) / pairs)

        # By AM-GM the bound is 1 or more where r = 0; the rounding of a bound of exactly 1 must not count.
        notes = {"can_act": share((bound < 1) & (slack > 0)), "acts": share(cosine > bound)}
        return jnp.mean(counts * jax.nn.relu(cosine - bound)), notes


def _length(phi: Array) -> Array:
    """‖φ‖ with a gradient of 0 at 0: (…, n, d) -> (…, n)."""
    return jnp.sqrt(jnp.maximum(jnp.sum(phi**2, axis=-1), SMALLEST**2))
