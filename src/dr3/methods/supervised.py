"""Supervised regression to Monte-Carlo returns: no bootstrapping, the paper's reference point (section 3.1)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.faults import episode_starts, gaps
from dr3.data.transitions import Transitions, monte_carlo_returns
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.methods.base import Info
from dr3.methods.discrete import DiscreteMethod, Learner, chosen, readout
from dr3.methods.unlogged import UNLOGGED, mark_unlogged
from dr3.networks import Critic
from dr3.networks.kernels.both_sides import both_sides


@hyperparameters
@dataclass(frozen=True)
class Supervised(DiscreteMethod):
    """Supervised regression: targets are the logged Monte-Carlo returns.

    Its Backup ties (s, a) to the logged (s', a'), for instruments to look at; where a' was not logged, to no action.
    """

    name: ClassVar[str] = "supervised"

    def prepare(self, data: Transitions) -> Transitions:
        """Returns at this method's own discount, and a mark where a' was not logged."""
        data = super().prepare(data)
        if self.reward_shift == 0 and self.reward_scale != 1:  # returns are linear in rewards
            data = dataclasses.replace(data, returns=np.float32(self.reward_scale) * data.returns)
        if data.returns_discount != self.discount or self.reward_shift != 0:
            if self.reward_shift != 0 and not _whole_episodes(data):
                raise UserError(
                    f"reward_shift changes returns by the length of episodes, and not all rows of those of {data.name} "
                    "are there: give reward_scale alone."
                )
            if not _whole_episodes(data):
                raise UserError(
                    f"The returns of {data.name} are discounted by {data.returns_discount}, and not all rows of its "
                    f"episodes are there to compute others from; load it with discount={self.discount}."
                )
            returns = monte_carlo_returns(data.rewards, data.episodes, self.discount)
            data = dataclasses.replace(data, returns=returns, returns_discount=self.discount)
        return mark_unlogged(data)

    def loss(self, critic: Critic, learner: Learner, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        phi, phi_next = both_sides(critic, batch)
        values = chosen(critic.values(phi), batch.actions)
        regression = self._mean_error(values - batch.returns)
        backup = Backup(
            phi=phi,
            phi_next=phi_next,
            values=values,
            next_values=_if_logged(critic.values(phi_next), batch.next_actions),
            targets=batch.returns,
            bootstraps=1 - batch.terminals,
            discounts=jnp.zeros_like(batch.terminals),
            actions=batch.actions,
            next_actions=batch.next_actions,
            same_output=(batch.next_actions == batch.actions).astype(jnp.float32),
            rewards=batch.rewards,
            readout=readout(critic, phi, batch.actions),
        )
        return regression, (backup, {"losses/regression": regression})

    def values(self, critic: Critic, observations: Array, actions: Array) -> Array:
        return _if_logged(critic.values(critic.features(observations)), actions)


def _if_logged(values: Array, actions: Array) -> Array:
    """The entries of (n, A) that (n,) actions point at; for an unlogged one that of action 0, without a gradient."""
    found = chosen(values, jnp.maximum(actions, 0))
    return jnp.where(actions == UNLOGGED, jax.lax.stop_gradient(found), found)


def _whole_episodes(data: Transitions) -> bool:
    """Whether every episode is there to its end, each row followed by the one it led to."""
    ends = np.append(episode_starts(data)[1:], len(data)) - 1
    # Behind a time-out there may have been one more row, without an s': its reward is in the returns alone, and at
    # discount 0 not even there.
    all_there = data.timeouts & (data.returns == data.rewards) & (data.returns_discount > 0)
    return bool((data.terminals | all_there)[ends].all() and len(gaps(data)) == 0)
