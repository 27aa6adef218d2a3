"""α, the weight of the policy's entropy (Haarnoja et al., 2018): held, or a multiplier that keeps an entropy."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dr3.methods.continuous import Learner, Trained
from dr3.optimization import Optimizer


def fresh_temperature(optimizer: Optimizer) -> Trained:
    """log α = 0."""
    return Trained.fresh(jnp.zeros(()), optimizer)


def temperature_now(held: float | None, learner: Learner) -> Array:
    return jnp.exp(learner.extras["temperature"].parameters) if held is None else jnp.asarray(held)


def temperature_step(
    learner: Learner, log_density: Array, target_entropy: float | None, optimizer: Optimizer
) -> Trained:
    """One step of log α on -log α · (E[log π] + target entropy): it falls while the policy is random enough."""
    wanted = -float(learner.model.policy.size) if target_entropy is None else target_entropy
    return learner.extras["temperature"].step(-(log_density + wanted), optimizer)
