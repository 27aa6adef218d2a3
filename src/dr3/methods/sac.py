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
from dr3.methods.temperature import fresh_temperature, temperature_now, temperature_step
from dr3.networks import ActorCritic, GaussianPolicy


@hyperparameters
@dataclass(frozen=True)
class SAC(ContinuousMethod):
    """Soft actor-critic: targets r + γ (min_k Q̄_k(s', a') - α log π(a'|s')), a' ~ π; the policy maximises the same.

    α is a multiplier that keeps the entropy of the policy near a target; it starts at 1.
    """

    name: ClassVar[str] = "sac"
    LEARNER_TERMS: ClassVar[tuple[str, ...]] = ("entropy_backup",)  # α is the learner's

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
        return super().init(spec, key)._replace(extras={"temperature": fresh_temperature(self._policy_optimizer)})

    def following(self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array) -> Following:
        drawn = policy(batch.next_observations).sample(key)
        values = self.target_values(learner, batch, drawn.actions)
        if self.entropy_backup:
            values = values - temperature_now(self.temperature, learner) * drawn.log_density
        return Following(drawn.actions, values)

    def critic_loss(
        self, model: ActorCritic, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, tuple[Backup, Info]]:
        td, (backup, info) = super().critic_loss(model, learner, batch, key)
        return td, (backup, {**info, "losses/temperature": temperature_now(self.temperature, learner)})

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """E[α log π(a|s) - min_k Q_k(s, a)], a ~ π(·|s) with its gradient."""
        drawn = policy(batch.observations).sample(key)
        values = self.online_values(learner, batch, drawn.actions)
        loss = jnp.mean(temperature_now(self.temperature, learner) * drawn.log_density - values)
        return loss, {"log_density": jnp.mean(drawn.log_density)}

    def update_extras(self, learner: Learner, info: dict[str, Array]) -> dict[str, Trained]:
        if self.temperature is not None:
            return learner.extras
        moved = temperature_step(learner, info["log_density"], self.target_entropy, self._policy_optimizer)
        return {**learner.extras, "temperature": moved}
