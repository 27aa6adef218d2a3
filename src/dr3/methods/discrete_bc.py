"""Behaviour cloning with discrete actions, with a critic that values the cloned policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.hyperparameters import hyperparameters
from dr3.methods.allowed import log_policy
from dr3.methods.base import Info, Spec
from dr3.methods.discrete import Bootstrap, BootstrappedMethod, Learner, chosen
from dr3.methods.td import expectation
from dr3.networks import Critic, PolicyCritic

POLICY = 6  # which part of a learner's key draws the policy


@hyperparameters
@dataclass(frozen=True)
class DiscreteBC(BootstrappedMethod):
    """Behaviour cloning with discrete actions: the policy maximises log π(a|s) of the logged actions.

    Its critic learns, beside it, what the cloned policy is worth: targets r + γ Σ_a' π(a'|s') Q_target(s', a'). The
    policy reads nothing of it, but regularizers and instruments have the same two sides to look at as elsewhere.
    """

    name: ClassVar[str] = "discrete-bc"
    CLONES: ClassVar[bool] = True  # the policy reads nothing of the critic: the doctor says nothing of bootstrapping

    def init(self, spec: Spec, key: Array) -> Learner:
        learner = super().init(spec, key)
        policy = self.fresh_network(spec, learner.critic.head.bias.shape[-1], jax.random.fold_in(key, POLICY))
        critic = PolicyCritic(learner.critic.trunk, learner.critic.head, policy)
        return Learner(critic, critic, self._optimizer.init(critic))

    def loss(self, critic: Critic, learner: Learner, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        assert isinstance(critic, PolicyCritic)
        following = stop_gradient(jnp.exp(log_policy(critic.logits(batch.next_observations), batch.next_masks)))
        td, (backup, info) = super().loss(critic, learner, batch._replace(next_behavior=following), key)
        cloning = -jnp.mean(chosen(log_policy(critic.logits(batch.observations), batch.masks), batch.actions))
        return td + cloning, (backup, {**info, "losses/cloning": cloning})

    def bootstrap(self, online: Array, target: Array, batch: Batch) -> Bootstrap:
        return expectation(target, batch)

    def act(self, critic: Critic, observations: Array) -> Array:
        """The likeliest action, the first of several."""
        return jnp.argmax(self.logits(critic, observations), axis=-1)

    def logits(self, critic: Critic, observations: Array) -> Array:
        """log π(·|s) up to a constant: (n, A).

        Args:
            critic: The critic, with the policy beside it.
            observations: (n, *shape).
        """
        assert isinstance(critic, PolicyCritic)
        return critic.logits(observations)
