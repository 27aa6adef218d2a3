"""What methods with continuous actions have in common: twin critics, a policy, targets from its actions."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.lax import stop_gradient

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.transitions import ContinuousActions, Transitions
from dr3.errors import UserError
from dr3.hyperparameters import check_settings, within
from dr3.methods.base import Info, Spec, objective
from dr3.methods.crops import random_crops
from dr3.networks import ActorCritic, GaussianPolicy, TwinCritics
from dr3.networks.action_critic import States
from dr3.optimization import Adam, move
from dr3.regularizers import Regularizer

# The key of an update is the critics' loss's own; what else is drawn is folded from it.
POLICY_NOISE = 1
CROPS = 3


class Trained(NamedTuple):
    """Parameters and the memory of the optimizer that trains them."""

    parameters: Any
    optimizer: optax.OptState


class Learner(NamedTuple):
    """All that an update changes."""

    critic: ActorCritic
    target: TwinCritics
    optimizer: optax.OptState  # of the critics
    policy_optimizer: optax.OptState
    extras: dict[str, Trained]  # what only some methods train: multipliers by their logarithm, a behaviour policy
    updates: Array  # () int32


class Following(NamedTuple):
    """The right-hand side of a backup."""

    actions: Array  # (n, size) a', between -1 and 1
    values: Array  # (n,) what the target takes s' to be worth


@dataclass(frozen=True)
class ContinuousMethod:
    """Two critics and a policy, trained side by side. A subclass says its `name` and what its policy is after.

    Losses are means over the two critics: to Adam that is the same as a loss for each, and a coefficient beside it
    means what it means for one critic. Both gradients are taken before either step is made.
    """

    name: ClassVar[str]
    TRACED: ClassVar[tuple[str, ...]] = ("target_period",)

    discount: float = 0.99
    """γ: what a reward one step later is worth."""

    learning_rate: float = 3e-4
    """Adam's step size for the critics."""

    policy_learning_rate: float = 3e-4
    """Adam's step size for the policy."""

    adam_epsilon: float = 1e-8
    """Adam's ε, the floor under the root of the second moment."""

    batch_size: int = 256
    """Rows per update, drawn with replacement; 0 takes the whole table each time."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the dense layers of the critics; the last one is the width of the features."""

    policy_hidden: tuple[int, ...] = (256, 256)
    """Widths of the policy's dense layers."""

    target_period: int = 1
    """Updates between two moves of the target network."""

    target_rate: float = 0.005
    """How far the target moves towards the critics each time; 1 copies them."""

    reward_scale: float = 1.0
    """Learn from scale · (r + shift): 4 for AntMaze, as in CQL's release. Policies are still tried with rewards as
    they are."""

    reward_shift: float = 0.0
    """See reward-scale: -0.5 for AntMaze in CQL's release, -1 (with scale 1) in IQL's."""

    channels: tuple[int, ...] = (16, 16, 16)
    """Where observations are pictures: filters of each 3 x 3 convolution of an encoder; all but the last halve it."""

    crop: int = 0
    """Where observations are pictures: each update sees them moved by up to so many pixels in either direction."""

    # --- What it learns from ---

    def prepare(self, data: Transitions) -> Transitions:
        """The table with the rewards to learn from. (Monte-Carlo returns stay those of the rewards as logged.)"""
        if not isinstance(data.action_space, ContinuousActions):
            raise UserError(
                f"{self.name} needs continuous actions, but those of {data.name} are discrete; "
                "use cql (CQL), dqn, rem or another method for discrete actions."
            )
        shape = tuple(data.observations.shape[1:])
        if len(shape) not in (1, 3):
            raise UserError(
                f"{self.name} needs observations that are vectors or pictures (height, width, channels); those of "
                f"{data.name} have the shape {shape}."
            )
        if self.crop and len(shape) != 3:
            raise UserError(f"crop is for pictures, but the observations of {data.name} are vectors: give --crop 0.")
        self.check()
        if (self.reward_scale, self.reward_shift) == (1.0, 0.0):
            return data
        return dataclasses.replace(
            data, rewards=np.float32(self.reward_scale) * (data.rewards + np.float32(self.reward_shift))
        )

    def check(self) -> None:
        """Refuse what nothing can be trained with. (Not on construction: JAX also builds methods from tracers.)"""
        check_settings(self)
        within("discount", self.discount, 0, 1)
        within("learning_rate", self.learning_rate, 0)
        within("policy_learning_rate", self.policy_learning_rate, 0)
        within("adam_epsilon", self.adam_epsilon, 0)
        within("batch_size", self.batch_size, 0)
        within("target_period", self.target_period, 1)
        within("target_rate", self.target_rate, 0, 1)
        within("reward_scale", self.reward_scale, 0)
        within("crop", self.crop, 0)
        for name in ("hidden", "policy_hidden", "channels"):
            widths = getattr(self, name)
            within(f"the number of widths in {name}", len(widths), 1)
            for width in widths:
                within(f"every width in {name}", width, 1)

    # --- Learning ---

    def init(self, spec: Spec, key: Array) -> Learner:
        space = spec.action_space
        assert isinstance(space, ContinuousActions)
        critic = ActorCritic.create(
            spec.observation_shape,
            space.size,
            hidden=self.hidden,
            policy_hidden=self.policy_hidden,
            low=space.low,
            high=space.high,
            key=key,
            channels=self.channels,
        )
        return Learner(
            critic=critic,
            target=critic.critics,
            optimizer=self._adam.init(critic.critics),
            policy_optimizer=self._policy_adam.init(critic.policy),
            extras={},
            updates=jnp.zeros((), jnp.int32),
        )

    def start_from(self, learner: Learner, critic: ActorCritic) -> Learner:
        """A fresh learner that knows what another one knew: critics, target and policy are its, optimizers are new."""
        return learner._replace(critic=critic, target=critic.critics)

    def loss(
        self, critic: ActorCritic, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, tuple[Backup, Info]]:
        """The critics' loss. No gradient reaches the policy: not by a' in the target, not by phi(s', a')."""
        return self.loss_at(critic.critics.states(batch.observations), critic, learner, batch, key)

    def loss_at(
        self, states: States, critic: ActorCritic, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, tuple[Backup, Info]]:
        """The same, given what the critics see of s: an encoder then looks at it once, whatever a loss asks of it."""
        policy = stop_gradient(critic.policy)
        backup = self.backup(states, critic, self.following(policy, learner, batch, key), batch)
        td = jnp.mean((backup.values - backup.targets) ** 2)
        return td, (backup, {"losses/td": td})

    def following(self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array) -> Following:
        """a' ~ π(·|s'), worth what the more pessimistic of the two target critics says."""
        drawn = policy(batch.next_observations).sample(key)
        return Following(drawn.actions, self.target_values(learner, batch, drawn.actions))

    def target_values(self, learner: Learner, batch: Batch, actions: Array) -> Array:
        """min_k Q̄_k(s', a): (n, size) -> (n,)."""
        return jnp.min(learner.target.q(learner.target.states(batch.next_observations), actions), axis=0)

    def backup(self, states: States, critic: ActorCritic, following: Following, batch: Batch) -> Backup:
        """Both sides, with the targets r + γ(1 - d) · (value of s'), from the online critics' features."""
        phi = critic.critics.features(states, critic.to_unit(batch.actions))
        # Where nobody asks for it the compiler drops it, so that the base method does not pay.
        phi_next = critic.critics.features(critic.critics.states(batch.next_observations), following.actions)
        # A time-out is no terminal: it bootstraps.
        bootstraps = 1 - batch.terminals
        discounts = self.discount * bootstraps
        return Backup(
            phi=phi,
            phi_next=phi_next,
            values=critic.critics.values(phi),
            next_values=following.values,
            targets=stop_gradient(batch.rewards + discounts * following.values),
            bootstraps=bootstraps,
            discounts=discounts,
            actions=batch.actions,
            next_actions=critic.to_range(following.actions),
            same_output=jnp.ones_like(bootstraps),
        )

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """What the policy minimises, and what `adjust` needs to know of it."""
        raise NotImplementedError

    def worth(self, learner: Learner, batch: Batch, actions: Array) -> Array:
        """min_k Q_k(s, a) of the online critics: (n, size) -> (n,)."""
        critics = learner.critic.critics
        return jnp.min(critics.q(critics.states(batch.observations), actions), axis=0)

    def update(
        self, learner: Learner, batch: Batch, key: Array, regularizer: Regularizer | None
    ) -> tuple[Learner, Array]:
        return self.learn(learner, self.cropped(batch, key), key, regularizer)

    def cropped(self, batch: Batch, key: Array) -> Batch:
        """What an update sees of a batch: s and s' of each row moved, either on its own. Measuring sees them as are."""
        if not self.crop:
            return batch
        of_now, of_next = jax.random.split(jax.random.fold_in(key, CROPS))
        return batch._replace(
            observations=random_crops(batch.observations, self.crop, of_now),
            next_observations=random_crops(batch.next_observations, self.crop, of_next),
        )

    def learn(
        self, learner: Learner, batch: Batch, key: Array, regularizer: Regularizer | None
    ) -> tuple[Learner, Array]:
        def total(critics: TwinCritics) -> tuple[Array, Info]:
            critic = dataclasses.replace(learner.critic, critics=critics)
            loss, (_, info) = objective(self, regularizer, critic, learner, batch, key)
            return loss, info

        (before, info), gradient = jax.value_and_grad(total, has_aux=True)(learner.critic.critics)
        return self.step(learner, gradient, info, batch, key), before

    def step(self, learner: Learner, gradient: TwinCritics, info: Info, batch: Batch, key: Array) -> Learner:
        """Everything that an update does once the critics' gradient is known."""
        critic = learner.critic
        critics, optimizer = self._adam.step(critic.critics, gradient, learner.optimizer)
        of_policy = jax.random.fold_in(key, POLICY_NOISE)
        slope, noted = jax.grad(self.policy_loss, has_aux=True)(critic.policy, learner, batch, of_policy)
        policy, policy_optimizer = self._policy_adam.step(critic.policy, slope, learner.policy_optimizer)
        return self.adjust(learner, {**info, **noted})._replace(
            critic=dataclasses.replace(critic, critics=critics, policy=policy),
            optimizer=optimizer,
            policy_optimizer=policy_optimizer,
            updates=learner.updates + 1,
        )

    def adjust(self, learner: Learner, info: dict[str, Array]) -> Learner:
        """Move whatever else is trained; a subclass that has some says so here."""
        return learner

    @property
    def synchronise_every(self) -> int | None:
        return self.target_period

    def synchronise(self, learner: Learner) -> Learner:
        return learner._replace(target=move(learner.target, learner.critic.critics, self.target_rate))

    @property
    def _adam(self) -> Adam:
        return Adam(self.learning_rate, self.adam_epsilon)

    @property
    def _policy_adam(self) -> Adam:
        return Adam(self.policy_learning_rate, self.adam_epsilon)

    # --- Using what was learned ---

    def critic(self, learner: Learner) -> ActorCritic:
        """Critics and policy: both are needed to act and to be looked at."""
        return learner.critic

    def act(self, critic: ActorCritic, observations: Array) -> Array:
        """The policy's mode, in the world's range."""
        return critic.to_range(critic.policy(observations).mode)

    def values(self, critic: ActorCritic, observations: Array, actions: Array) -> Array:
        """Q(s, a), the mean of the critics."""
        return jnp.mean(critic.critics.q(critic.critics.states(observations), critic.to_unit(actions)), axis=0)

    def features(self, critic: ActorCritic, observations: Array, actions: Array) -> Array:
        """phi_k(s, a): (critics, n, d)."""
        return critic.critics.features(critic.critics.states(observations), critic.to_unit(actions))
