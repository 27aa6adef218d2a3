"""Fitted Q evaluation: what a learned policy is worth, judged by a critic that is fitted for that policy alone.

FQE (Le, Voloshin and Yue, 2019) iterates Q ← r + γ Q(s', π(s')) on the logged transitions. That is offline SARSA on the
same table with every a' replaced by π(s'), so it runs in the compiled loop as that.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from dr3.data.batch import Batch
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.diagnostics.answers import act
from dr3.errors import UserError
from dr3.methods import SARSA, Method, Spec
from dr3.training.loop import advance, begin


@dataclass(frozen=True)
class FQE:
    """How a policy is evaluated. The networks start from `seed`, the same for every policy."""

    updates: int = 1500
    hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 3e-3
    batch_size: int = 64
    target_period: int = 20
    seed: int = 0

    def __call__(self, policy: Any, data: Transitions, discount: float) -> float:
        """Mean over the data's first states of Q_π(s, π(s)); `policy` maps (n, *shape) observations to actions."""
        starts = data.observations[_first_rows(data)]
        return self.value(policy(data.next_observations), starts, policy(starts), data, discount)

    def value(
        self,
        next_actions: NDArray[Any],
        starts: NDArray[Any],
        start_actions: NDArray[Any],
        data: Transitions,
        discount: float,
    ) -> float:
        """The same for a policy given by what it does at each s' and at the first states."""
        if not isinstance(data.action_space, DiscreteActions):
            raise UserError(f"fqe is for discrete actions, and those of {data.name} are continuous; use another rule.")
        method = SARSA(
            discount=discount,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            hidden=self.hidden,
            target_period=self.target_period,
        )
        known = np.ones(len(data), np.bool_)
        table = Batch.of(dataclasses.replace(data, next_actions=next_actions, next_action_known=known))
        traced, seed = jax.tree.map(jnp.asarray, (method, np.uint32(self.seed)))
        start = begin(traced, seed, Spec.of(data))
        fitted = advance(traced, None, seed, start, table, jnp.int32(self.updates))
        critic = method.critic(fitted.learner)
        return float(np.mean(method.values(critic, jnp.asarray(starts), jnp.asarray(start_actions, jnp.int32))))


def fqe_values(critics: list[Any], method: Method, data: Transitions, fqe: FQE) -> NDArray[np.float64]:
    """The value of each critic's policy: (critics,). Policies that act alike on the data are evaluated once."""
    starts = data.observations[_first_rows(data)]
    known: dict[bytes, float] = {}
    values = []
    for critic in critics:
        following, first = (np.asarray(act(method, critic, jnp.asarray(s))) for s in (data.next_observations, starts))
        key = following.tobytes() + first.tobytes()
        if key not in known:
            known[key] = fqe.value(following, starts, first, data, method.discount)
        values.append(known[key])
    return np.array(values)


def _first_rows(data: Transitions) -> NDArray[np.int64]:
    """The rows that begin an episode."""
    return np.flatnonzero(np.diff(data.episodes, prepend=data.episodes[0] - 1))
