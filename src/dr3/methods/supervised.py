"""Supervised regression to Monte-Carlo returns: no bootstrapping, the paper's reference point (section 3.1)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.transitions import Transitions, monte_carlo_returns
from dr3.hyperparameters import hyperparameters
from dr3.methods.base import Info
from dr3.methods.discrete import DiscreteMethod, Learner, chosen
from dr3.networks import DiscreteCritic


@hyperparameters
@dataclass(frozen=True)
class Supervised(DiscreteMethod):
    """Supervised regression: targets are the logged Monte-Carlo returns.

    Its Backup ties (s, a) to the logged (s', a'), for instruments to look at.
    """

    name: ClassVar[str] = "supervised"

    def prepare(self, data: Transitions) -> Transitions:
        """Returns at this method's own discount."""
        data = super().prepare(data)
        if data.returns_discount != self.discount:
            returns = monte_carlo_returns(data.rewards, data.episodes, self.discount)
            data = dataclasses.replace(data, returns=returns, returns_discount=self.discount)
        return data

    def loss(
        self, critic: DiscreteCritic, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, tuple[Backup, Info]]:
        phi, phi_next = critic.features(batch.observations), critic.features(batch.next_observations)
        values = chosen(critic.values(phi), batch.actions)
        regression = self._mean_error(values - batch.returns)
        backup = Backup(
            phi=phi,
            phi_next=phi_next,
            values=values,
            next_values=chosen(critic.values(phi_next), batch.next_actions),
            targets=batch.returns,
            bootstraps=1 - batch.terminals,
            actions=batch.actions,
            next_actions=batch.next_actions,
            same_output=(batch.next_actions == batch.actions).astype(jnp.float32),
        )
        return regression, (backup, {"losses/regression": regression})
