"""Supervised regression to Monte-Carlo returns: no bootstrapping, the paper's reference point (section 3.1)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.transitions import Transitions, monte_carlo_returns
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.methods.base import Info
from dr3.methods.discrete import DiscreteMethod, Learner, chosen
from dr3.networks import Critic


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
            if not _whole_episodes(data):
                raise UserError(
                    f"The returns of {data.name} are discounted by {data.returns_discount}, and not all rows of its "
                    f"episodes are there to compute others from; load it with discount={self.discount}."
                )
            returns = monte_carlo_returns(data.rewards, data.episodes, self.discount)
            data = dataclasses.replace(data, returns=returns, returns_discount=self.discount)
        return data

    def loss(self, critic: Critic, learner: Learner, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
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
            discounts=jnp.zeros_like(batch.terminals),
            actions=batch.actions,
            next_actions=batch.next_actions,
            same_output=(batch.next_actions == batch.actions).astype(jnp.float32),
        )
        return regression, (backup, {"losses/regression": regression})


def _whole_episodes(data: Transitions) -> bool:
    """Whether every episode is there to its end, each row followed by the one it led to."""
    goes_on = data.episodes[:-1] == data.episodes[1:]
    led_to = (data.next_observations[:-1] == data.observations[1:]).reshape(len(goes_on), -1).all(axis=1)
    ended = data.terminals | data.timeouts
    return bool((led_to | ~goes_on).all() and ended[~np.append(goes_on, False)].all())
