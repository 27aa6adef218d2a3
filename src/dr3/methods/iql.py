"""Implicit Q-learning (Kostrikov, Nair and Levine, 2021) with discrete actions."""

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
from dr3.methods.allowed import greedy, log_policy
from dr3.methods.base import Info, Spec
from dr3.methods.discrete import Bootstrap, BootstrappedMethod, Learner, chosen
from dr3.methods.expectiles import advantage_weights, expectile_loss
from dr3.methods.unlogged import logged_or, mark_unlogged
from dr3.networks import Critic, PolicyCritic

POLICY, VALUE = 6, 5  # which parts of a learner's key draw the policy and V


@hyperparameters
@dataclass(frozen=True)
class IQL(BootstrappedMethod):
    """IQL: V(s) is the τ-expectile of Q_target(s, a) over logged actions; targets are r + γ V(s').

    No value of an action that was not logged is ever asked for. The policy, a network of its own, maximises
    exp(β (Q_target(s, a) - V(s))) log π(a|s) of logged actions, the weight at most 100.

    The paper is about continuous actions; with discrete ones the formulas stay, and here they have one critic in the
    place of the smaller of two. For continuous actions it is ContinuousIQL, which `dr3 train iql` takes where --data
    holds some; its flags are listed by `dr3 train continuous-iql --help`.
    """

    name: ClassVar[str] = "iql"

    expectile: float = 0.7
    """τ: 0.5 is SARSA's mean over logged actions, near 1 their best."""

    advantage_weight: float = 3.0
    """β: how much more better actions are followed; 0 is cloning."""

    target_period: int = 1
    target_rate: float = 0.005

    def check(self) -> None:
        super().check()
        within("expectile", self.expectile, 0, 1)
        within("advantage_weight", self.advantage_weight, 0)

    def prepare(self, data: Transitions) -> Transitions:
        return mark_unlogged(super().prepare(data))

    def init(self, spec: Spec, key: Array) -> Learner:
        learner = super().init(spec, key)
        trunk, head = learner.critic.trunk, learner.critic.head
        policy = self.fresh_network(spec, head.bias.shape[-1], jax.random.fold_in(key, POLICY))
        value = self.fresh_network(spec, 1, jax.random.fold_in(key, VALUE))
        critic = PolicyCritic(trunk, head, policy, value)
        return Learner(critic, critic, self._optimizer.init(critic))

    def loss(self, critic: Critic, learner: Learner, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        """The TD error of Q, the expectile loss of V and the policy's: three networks that share no weights."""
        assert isinstance(critic, PolicyCritic)
        assert learner.target is not None
        td, (backup, info) = super().loss(critic, learner, batch, key)
        logged = chosen(learner.target.values(learner.target.features(batch.observations)), batch.actions)
        advantages = stop_gradient(logged) - critic.state_values(batch.observations)
        value = expectile_loss(advantages, self.expectile)
        weights = stop_gradient(advantage_weights(advantages, self.advantage_weight))
        likelihood = chosen(log_policy(critic.logits(batch.observations), batch.masks), batch.actions)
        policy = -jnp.mean(weights * likelihood)
        return td + value + policy, (backup, {**info, "losses/value": value, "losses/policy": policy})

    def backup(self, critic: Critic, target: Critic, phi: Array, phi_next: Array, batch: Batch) -> Backup:
        """V(s') in the target, tied to the logged (s', a').

        V(s') stands for no single action. What it was fitted to, on the row that comes next, is Q_target(s', a'): that
        is the pair whose value travels to (s, a). Where the log holds no a' it is the policy's likeliest.
        """
        assert isinstance(critic, PolicyCritic)
        likeliest = greedy(critic.logits(batch.next_observations), batch.next_masks)
        actions = logged_or(batch.next_actions, likeliest)
        same = (actions == batch.actions).astype(jnp.float32)
        values = critic.state_values(batch.next_observations)
        return self.tie(critic, phi, phi_next, Bootstrap(values, actions, same), batch)

    def act(self, critic: Critic, observations: Array) -> Array:
        """The policy's likeliest action, the first of several."""
        return jnp.argmax(self.logits(critic, observations), axis=-1)

    def logits(self, critic: Critic, observations: Array) -> Array:
        """log π(·|s) up to a constant: (n, A).

        Args:
            critic: The critic, with the policy beside it.
            observations: (n, *shape).
        """
        assert isinstance(critic, PolicyCritic)
        return critic.logits(observations)
