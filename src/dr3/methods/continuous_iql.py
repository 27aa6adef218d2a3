"""Implicit Q-learning with continuous actions (Kostrikov, Nair and Levine, 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.transitions import Transitions
from dr3.hyperparameters import hyperparameters, within
from dr3.methods.base import Info, Spec
from dr3.methods.continuous import ContinuousMethod, Following, Learner
from dr3.methods.expectiles import advantage_weights, expectile_loss
from dr3.methods.units import standardisation_for
from dr3.methods.unlogged import logged_or, mark_unlogged
from dr3.networks import ActorCritic, GaussianPolicy, StateValue, ValuedCritics

VALUE = 5  # which part of a learner's key draws V


@hyperparameters
@dataclass(frozen=True)
class ContinuousIQL(ContinuousMethod):
    """IQL for continuous actions: no value of an action that was not logged is ever asked for.

    V(s) is the τ-expectile of min_k Q̄_k(s, a) over logged actions; targets are r + γ V(s'); the policy maximises
    exp(β (min_k Q̄_k(s, a) - V(s))) log π(a|s) of logged actions, the weight at most 100.

    Where this differs from the release: V, critics and policy take their gradients from the same weights (there V moves
    first), the policy's step size does not decay by a cosine, and its deviation depends on the state.
    """

    name: ClassVar[str] = "continuous-iql"

    expectile: float = 0.7
    """τ: 0.5 is SARSA's mean over logged actions, near 1 their best. 0.9 for AntMaze."""

    advantage_weight: float = 3.0
    """β: how much more better actions are followed; 0 is cloning. 10 for AntMaze."""

    def check(self) -> None:
        super().check()
        within("expectile", self.expectile, 0, 1)
        within("advantage_weight", self.advantage_weight, 0)

    def prepare(self, data: Transitions) -> Transitions:
        return mark_unlogged(super().prepare(data))

    def init(self, spec: Spec, key: Array) -> Learner:
        learner = super().init(spec, key)
        value = StateValue.create(
            spec.seen,
            self.hidden,
            key=jax.random.fold_in(key, VALUE),
            channels=self.channels,
            standardisation=standardisation_for(spec, self.standardise),
            strided=self.encoder == "strided",
        )
        critics = ValuedCritics(learner.model.critics.members, learner.model.critics.encoder, value)
        model = ActorCritic(critics, learner.model.policy, learner.model.low, learner.model.high)
        return learner._replace(model=model, target=critics, optimizer=self._optimizer.init(critics))

    def following(self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array) -> Following:
        """V(s'), and the logged a'.

        V(s') stands for no single action. The tie is to (s', a') as logged: what V(s') was fitted to, on the row that
        comes next, is Q̄(s', a'), so that is the pair whose value travels to (s, a), and whose features can grow along
        with it. Where the log holds no a' it is the policy's, which is fitted to logged actions too. The choice is
        seen by regularizers and instruments alone: the target is V(s') either way.
        """
        actions = logged_or(learner.model.to_unit(batch.next_actions), policy(batch.next_observations).mode)
        return Following(actions, _value_of(learner.model)(batch.next_observations))

    def critic_loss(
        self, model: ActorCritic, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, tuple[Backup, Info]]:
        """The TD error of the critics and the expectile loss of V, which share no weights."""
        td, (backup, info) = super().critic_loss(model, learner, batch, key)
        value = expectile_loss(
            self.logged_values(learner, batch) - _value_of(model)(batch.observations), self.expectile
        )
        return td + value, (backup, {**info, "losses/value": value})

    def logged_values(self, learner: Learner, batch: Batch) -> Array:
        """min_k Q̄_k(s, a) of the target critics at the logged actions: (n,).

        Args:
            learner: All that an update changes.
            batch: n rows.
        """
        target, actions = learner.target, learner.model.to_unit(batch.actions)
        return jnp.min(target.q(target.states(batch.observations), actions), axis=0)

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        advantages = self.logged_values(learner, batch) - _value_of(learner.model)(batch.observations)
        weights = stop_gradient(advantage_weights(advantages, self.advantage_weight))
        likelihood = policy(batch.observations).log_density(learner.model.to_unit(batch.actions))
        return -jnp.mean(weights * likelihood), {}


def _value_of(model: ActorCritic) -> StateValue:
    assert isinstance(model.critics, ValuedCritics)
    return model.critics.value
