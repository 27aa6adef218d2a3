"""ReBRAC: TD3+BC with penalties of their own for critics and policy, and larger networks (Tarasov et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from dr3.data.batch import Batch
from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters, within
from dr3.methods.continuous import Following, Learner
from dr3.methods.td3 import TD3
from dr3.networks import GaussianPolicy


@hyperparameters
@dataclass(frozen=True)
class ReBRAC(TD3):
    """ReBRAC: targets r + γ (min_k Q̄_k(s', a') - β2 ‖a' - a'_logged‖²), a' = π̄(s') + clipped noise.

    The policy minimises β1 ‖π(s) - a_logged‖² - min_k Q_k(s, π(s)) / mean |min_k Q_k|. Squares are sums over the
    action's dimensions, scaled to ±1. Critics have layer norm: before each ReLU, as everywhere here; in the release it
    is after.
    """

    name: ClassVar[str] = "rebrac"

    policy_penalty: float = 0.01
    """β1: what leaving the logged action costs the policy. The paper tunes it for each data set, from 0.001 to 0.1
    (MuJoCo); this is its number for walker2d-full-replay."""

    critic_penalty: float = 0.001
    """β2: what leaving the logged a' costs in the targets. The paper tunes it from 0 to 0.5; see policy-penalty."""

    learning_rate: float = 1e-3
    policy_learning_rate: float = 1e-3
    batch_size: int = 1024
    hidden: tuple[int, ...] = (256, 256, 256)
    policy_hidden: tuple[int, ...] = (256, 256, 256)
    layer_norm: bool = True

    def check(self) -> None:
        super().check()
        within("policy_penalty", self.policy_penalty, 0)
        within("critic_penalty", self.critic_penalty, 0)

    def prepare(self, data: Transitions) -> Transitions:
        """Only rows whose a' was logged, or needs none because the environment ended; time-outs go, as there."""
        usable = data.terminals | data.next_action_known
        if not usable.any():
            raise UserError(f"rebrac needs the action taken after each row, and {data.name} holds none; use td3-bc.")
        return super().prepare(data if usable.all() else data.rows(usable.nonzero()[0]))

    def following(self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array) -> Following:
        actions = self.smoothed(learner, batch, key)
        distance = jnp.sum((actions - learner.model.to_unit(batch.next_actions)) ** 2, axis=-1)
        return Following(actions, self.target_values(learner, batch, actions) - self.critic_penalty * distance)

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        actions = policy(batch.observations).mode
        values = self.online_values(learner, batch, actions)
        distance = jnp.sum((actions - learner.model.to_unit(batch.actions)) ** 2, axis=-1)
        weight = 1 / stop_gradient(jnp.mean(jnp.abs(values)))
        return jnp.mean(self.policy_penalty * distance - weight * values), {}
