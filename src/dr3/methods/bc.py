"""Behaviour cloning with continuous actions, with critics that value the cloned policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from dr3.data.batch import Batch
from dr3.hyperparameters import hyperparameters
from dr3.methods.continuous import ContinuousMethod, Learner
from dr3.networks import GaussianPolicy


@hyperparameters
@dataclass(frozen=True)
class BC(ContinuousMethod):
    """Behaviour cloning: the policy maximises log π(a|s) of the logged actions.

    Its critics learn, beside it, what the cloned policy is worth, by TD with a' ~ π: the policy reads nothing of
    them, but regularizers and instruments have the same two sides to look at as in any other method.
    """

    name: ClassVar[str] = "bc"
    CLONES: ClassVar[bool] = True  # the policy reads nothing of the critic: the doctor says nothing of bootstrapping

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        likelihood = policy(batch.observations).log_density(learner.model.to_unit(batch.actions))
        return -jnp.mean(likelihood), {}
