"""TD3+BC: TD3 with a cloning term in the policy's loss, and nothing else (Fujimoto and Gu, 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from dr3.data.batch import Batch
from dr3.hyperparameters import hyperparameters, within
from dr3.methods.continuous import Learner
from dr3.methods.td3 import TD3
from dr3.networks import GaussianPolicy


@hyperparameters
@dataclass(frozen=True)
class TD3BC(TD3):
    """TD3+BC: the policy minimises -λ Q_1(s, π(s)) + (π(s) - a_logged)², with λ = α / mean |Q_1(s, π(s))|.

    The square is a mean over the action's dimensions, as in the release. λ is a number of each batch, without a
    gradient. The release standardises observations: here that is `standardise`, off by default. Its networks start as
    PyTorch's do, ours as CQL's (all biases of hidden layers at 0.1).
    """

    name: ClassVar[str] = "td3-bc"

    alpha: float = 2.5
    """What the critic counts beside cloning; 0 is cloning alone, and TD3 without cloning is the method td3."""

    def check(self) -> None:
        super().check()
        within("alpha", self.alpha, 0)

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        actions = policy(batch.observations).mode
        values = self.first_values(learner, batch, actions)
        weight = self.alpha / stop_gradient(jnp.mean(jnp.abs(values)))
        cloning = jnp.mean((actions - learner.model.to_unit(batch.actions)) ** 2)
        return cloning - weight * jnp.mean(values), {}
