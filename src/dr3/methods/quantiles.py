"""Quantile regression of the return's distribution (QR-DQN; Dabney et al., 2018): a loss for DQN and CQL."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.methods.target_clip import clipped
from dr3.networks import QuantileCritic


def quantile_td(critic: QuantileCritic, target: QuantileCritic, backup: Backup, batch: Batch) -> Array:
    """The quantile Huber loss (κ = 1) between θ_i(s, a) and r + γ(1 - d) θ_j,target(s', a'), a' the backup's own.

    A sum over the quantiles i that are trained, a mean over those j they are compared with, and a mean over the batch.
    """
    trained = of_actions(critic.quantiles(backup.phi), backup.actions)  # (n, N)
    following = of_actions(target.quantiles(target.features(batch.next_observations)), backup.next_actions)
    wanted = jax.lax.stop_gradient(batch.rewards[:, None] + backup.discounts[:, None] * following)
    if batch.value_bounds is not None:
        wanted = clipped(wanted, batch)
    errors = wanted[:, None, :] - trained[:, :, None]  # (n, i, j)
    levels = (jnp.arange(critic.count) + 0.5) / critic.count
    weights = jnp.abs(levels[:, None] - (errors < 0))
    return jnp.mean(jnp.sum(jnp.mean(weights * optax.huber_loss(errors), axis=2), axis=1))


def of_actions(quantiles: Array, actions: Array) -> Array:
    """(n, A, N) at (n,) actions: (n, N)."""
    return jnp.take_along_axis(quantiles, actions[:, None, None], axis=1)[:, 0]
