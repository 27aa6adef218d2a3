"""TD3: twin delayed deterministic policy gradients (Fujimoto, van Hoof and Meger, 2018), trained offline as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dr3.data.batch import Batch
from dr3.hyperparameters import hyperparameters, within
from dr3.methods.base import Spec
from dr3.methods.continuous import ContinuousMethod, Following, Learner, Trained
from dr3.networks import ActorCritic, GaussianPolicy
from dr3.optimization import move


@hyperparameters
@dataclass(frozen=True)
class TD3(ContinuousMethod):
    """TD3: targets r + γ min_k Q̄_k(s', a'), a' = π̄(s') + clipped noise; the policy maximises Q_1(s, π(s)).

    Nothing keeps the policy near the logged actions: offline its critics run away sooner or later. It is here as that,
    and as what TD3+BC and ReBRAC are built on.

    The policy is the mode of the network that other methods here have: tanh of a mean. The half of its last layer that
    gives a deviation is neither read nor trained.
    """

    name: ClassVar[str] = "td3"

    policy_delay: int = 2
    """Updates of the critics for each one of the policy."""

    target_noise: float = 0.2
    """Standard deviation of what is added to a' in the targets, of actions scaled to ±1."""

    noise_clip: float = 0.5
    """The most that is added to a', in either direction."""

    # The release moves its targets when it moves the policy.
    target_period: int = 2

    def check(self) -> None:
        super().check()
        within("policy_delay", self.policy_delay, 1)
        within("target_noise", self.target_noise, 0)
        within("noise_clip", self.noise_clip, 0)

    def following(self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array) -> Following:
        actions = self.smoothed(learner, batch, key)
        return Following(actions, self.target_values(learner, batch, actions))

    def smoothed(self, learner: Learner, batch: Batch, key: Array) -> Array:
        """a' = π̄(s') + noise, between -1 and 1: the same a for the target, for regularizers and for instruments.

        Args:
            learner: All that an update changes.
            batch: n rows.
            key: For the noise.
        """
        planned = learner.extras["target_policy"].parameters(batch.next_observations).mode
        noise = self.target_noise * jax.random.normal(key, planned.shape)
        return jnp.clip(planned + jnp.clip(noise, -self.noise_clip, self.noise_clip), -1.0, 1.0)

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        return -jnp.mean(self.first_values(learner, batch, policy(batch.observations).mode)), {}

    def first_values(self, learner: Learner, batch: Batch, actions: Array) -> Array:
        """Q_1(s, a) of the first online critic alone, as the release has it: (n, size) -> (n,).

        Args:
            learner: All that an update changes.
            batch: n rows.
            actions: Between -1 and 1, (n, size).
        """
        critic = learner.model.critics.members[0]
        return critic.values(critic.features(critic.states(batch.observations), actions))

    # --- A policy that moves at every second update, and a copy that trails it ---

    def policy_step(
        self, learner: Learner, batch: Batch, key: Array
    ) -> tuple[GaussianPolicy, optax.OptState, dict[str, Array]]:
        step = super().policy_step
        return jax.lax.cond(
            (learner.updates + 1) % self.policy_delay == 0,
            lambda: step(learner, batch, key),
            lambda: (learner.model.policy, learner.policy_optimizer, {}),
        )

    def init(self, spec: Spec, key: Array) -> Learner:
        return _with_target_policy(learner := super().init(spec, key), learner.model.policy)

    def start_from(self, learner: Learner, model: ActorCritic) -> Learner:
        return _with_target_policy(super().start_from(learner, model), model.policy)

    def synchronise(self, learner: Learner) -> Learner:
        trailing = learner.extras["target_policy"].parameters
        moved = move(trailing, learner.model.policy, self.target_rate)
        return _with_target_policy(super().synchronise(learner), moved)


def _with_target_policy(learner: Learner, policy: GaussianPolicy) -> Learner:
    """No optimizer trains it."""
    return learner._replace(extras={**learner.extras, "target_policy": Trained(policy, optax.EmptyState())})
