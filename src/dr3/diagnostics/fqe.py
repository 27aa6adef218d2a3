"""Fitted Q evaluation: what a learned policy is worth, judged by a critic that is fitted for that policy alone.

FQE (Le, Voloshin and Yue, 2019) iterates Q ← r + γ Q(s', π(s')) on the logged transitions. That is offline SARSA on the
same table with every a' replaced by π(s'), so it runs in the compiled loop as that.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from dr3.data.batch import Batch
from dr3.data.frames import Observations, chunks
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.diagnostics.answers import act
from dr3.diagnostics.measure import bounds_of
from dr3.hyperparameters import hyperparameters
from dr3.methods import SARSA, ContinuousMethod, Method, Spec
from dr3.methods.continuous import Following, Learner
from dr3.networks import GaussianPolicy
from dr3.training.loop import advance, begin
from dr3.training.metrics import PROBE_SIZE

OVERSHOOT = 0.1  # of the span of possible returns: a regression may miss its bounds by a little


@hyperparameters
@dataclass(frozen=True)
class ContinuousSARSA(ContinuousMethod):
    """SARSA with continuous actions: targets r + γ mean_k Q̄_k(s', a') with the a' in the table; no policy learns."""

    name: ClassVar[str] = "continuous-sarsa"

    policy_hidden: tuple[int, ...] = (1,)

    def following(self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array) -> Following:
        # The mean: the smaller of two would undervalue the policy that is judged.
        actions = learner.critic.to_unit(batch.next_actions)
        return Following(
            actions, jnp.mean(learner.target.q(learner.target.states(batch.next_observations), actions), axis=0)
        )

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        return jnp.zeros(()), {}


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
        """The same for a policy given by what it does at each s' and at the first states; NaN if the fit diverged."""
        discrete = isinstance(data.action_space, DiscreteActions)
        method: Any = (SARSA if discrete else ContinuousSARSA)(
            discount=discount,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            hidden=self.hidden,
            target_period=self.target_period,
            target_rate=1.0,
        )
        known = np.ones(len(data), np.bool_)
        table = Batch.of(dataclasses.replace(data, next_actions=next_actions, next_action_known=known))
        traced, seed = jax.tree.map(jnp.asarray, (method, np.uint32(self.seed)))
        start = begin(traced, seed, Spec.of(data))
        fitted = advance(traced, None, seed, start, table, jnp.int32(self.updates))
        if not fitted.finite:  # the weights before that are finite, and their values the largest there are
            return float("nan")
        critic = method.critic(fitted.learner)
        first = jnp.asarray(start_actions, jnp.int32 if discrete else jnp.float32)
        return float(np.mean(method.values(critic, jnp.asarray(starts), first)))


def fqe_values(critics: list[Any], method: Method, data: Transitions, fqe: FQE) -> NDArray[np.float64]:
    """The value of each critic's policy: (critics,). Policies that act alike on the data are evaluated once.

    NaN for a critic whose own values are not finite: what it would do is chance. NaN too where the evaluation itself
    ran away, as its bootstrapping may: a value that no rewards of the data add up to says nothing of the policy.
    """
    if isinstance(method, ContinuousMethod):
        data = method.prepare(data)  # the policy is judged by the rewards it was trained on
    starts = data.observations[_first_rows(data)]
    known: dict[bytes, float] = {}
    values = []
    for critic in critics:
        following, first = (_actions(method, critic, seen) for seen in (data.next_observations, starts))
        few = slice(PROBE_SIZE)
        if not np.isfinite(method.values(critic, jnp.asarray(starts[few]), jnp.asarray(first[few]))).all():
            values.append(np.nan)
            continue
        key = following.tobytes() + first.tobytes()
        if key not in known:
            value = fqe.value(following, starts, first, data, method.discount)
            known[key] = value if _possible(value, data, method.discount) else np.nan
        values.append(known[key])
    return np.array(values)


def _possible(value: float, data: Transitions, discount: float) -> bool:
    if discount == 1:
        return True  # without a longest episode nothing bounds a return
    low, high = bounds_of(data, discount)
    slack = OVERSHOOT * (high - low)
    return low - slack <= value <= high + slack


def _actions(method: Method, critic: Any, observations: Observations) -> NDArray[Any]:
    """What a policy does, some rows at a time: an encoder's outputs for all pictures would fill the memory."""
    return np.concatenate([np.asarray(act(method, critic, jnp.asarray(part))) for part in chunks(observations)])


def _first_rows(data: Transitions) -> NDArray[np.int64]:
    """The rows that begin an episode."""
    return np.flatnonzero(np.diff(data.episodes, prepend=data.episodes[0] - 1))
