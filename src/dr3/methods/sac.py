"""Soft actor-critic (Haarnoja et al., 2018): the online agent whose replays the MuJoCo data are (appendix A.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.hyperparameters import hyperparameters, within
from dr3.methods.base import Info, Spec
from dr3.methods.continuous import ContinuousMethod, Following, Learner, Trained
from dr3.networks import ActorCritic, GaussianPolicy
from dr3.networks.action_critic import States


@hyperparameters
@dataclass(frozen=True)
class SAC(ContinuousMethod):
    """Soft actor-critic: targets r + γ (min_k Q̄_k(s', a') - α log π(a'|s')), a' ~ π; the policy maximises the same.

    α is a multiplier that keeps the entropy of the policy near a target; it starts at 1.
    """

    name: ClassVar[str] = "sac"

    entropy_backup: bool = True
    """Whether -α log π(a'|s') is part of the targets; without it they are those of a plain actor-critic."""

    target_entropy: float | None = None
    """The entropy that α keeps, of actions scaled to ±1; by default minus the number of their dimensions."""

    temperature: float | None = None
    """α held at this value instead of learned."""

    def check(self) -> None:
        super().check()
        if self.temperature is not None:
            within("temperature", self.temperature, 0)

    def init(self, spec: Spec, key: Array) -> Learner:
        learner = super().init(spec, key)
        log_alpha = jnp.zeros(())
        return learner._replace(extras={"temperature": Trained(log_alpha, self._policy_adam.init(log_alpha))})

    def alpha_now(self, learner: Learner) -> Array:
        if self.temperature is not None:
            return jnp.asarray(self.temperature)
        return jnp.exp(learner.extras["temperature"].parameters)

    def loss_at(
        self, states: States, critic: ActorCritic, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, tuple[Backup, Info]]:
        td, (backup, info) = super().loss_at(states, critic, learner, batch, key)
        return td, (backup, {**info, "losses/temperature": self.alpha_now(learner)})

    def following(self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array) -> Following:
        drawn = policy(batch.next_observations).sample(key)
        values = self.target_values(learner, batch, drawn.actions)
        if self.entropy_backup:
            values = values - self.alpha_now(learner) * drawn.log_density
        return Following(drawn.actions, values)

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """E[α log π(a|s) - min_k Q_k(s, a)], a ~ π(·|s) with its gradient."""
        drawn = policy(batch.observations).sample(key)
        worth = self.worth(learner, batch, drawn.actions)
        loss = jnp.mean(self.alpha_now(learner) * drawn.log_density - worth)
        return loss, {"log_density": jnp.mean(drawn.log_density)}

    def adjust(self, learner: Learner, info: dict[str, Array]) -> Learner:
        """One step of log α on -log α · (E[log π] + target entropy): it falls while the policy is random enough."""
        if self.temperature is not None:
            return learner
        size = learner.critic.policy.head.bias.shape[0] // 2
        wanted = -float(size) if self.target_entropy is None else self.target_entropy
        log_alpha, memory = learner.extras["temperature"]
        moved = self._policy_adam.step(log_alpha, -(info["log_density"] + wanted), memory)
        return learner._replace(extras={**learner.extras, "temperature": Trained(*moved)})
