"""What methods with continuous actions have in common: twin critics, a policy, targets from its actions."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.lax import stop_gradient

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.transitions import ContinuousActions, Transitions
from dr3.errors import UserError
from dr3.hyperparameters import ADDED_LATER, within
from dr3.methods.base import Info, Spec, objective
from dr3.methods.crops import random_crops
from dr3.methods.target_clip import clipped, with_value_bounds
from dr3.methods.units import check_vectors, scaled_rewards, standardisation_for
from dr3.networks import ActorCritic, GaussianPolicy, TwinCritics
from dr3.networks.action_critic import States
from dr3.networks.dormant import recycle
from dr3.networks.mixed import parts_of
from dr3.optimization import WEIGHT_DECAY, Optimizer, OptimizerName, check_weight_decay, cleared, move, optimizer_for
from dr3.regularizers import Regularizer

# The key of an update is the critics' loss's own; what else is drawn is folded from it.
POLICY_NOISE = 1
CROPS = 3


class Trained(NamedTuple):
    """Parameters and the memory of the optimizer that trains them."""

    parameters: Any
    optimizer: optax.OptState

    @classmethod
    def fresh(cls, parameters: Any, by: Optimizer) -> Trained:
        return cls(parameters, by.init(parameters))

    def step(self, gradient: Any, by: Optimizer) -> Trained:
        return Trained(*by.step(self.parameters, gradient, self.optimizer))


class Learner(NamedTuple):
    """All that an update changes."""

    model: ActorCritic  # model.critics, model.policy
    target: TwinCritics
    optimizer: optax.OptState  # of the critics
    policy_optimizer: optax.OptState
    # What only some methods have: multipliers by their logarithm, a behaviour policy, a policy that trails.
    extras: dict[str, Trained]
    updates: Array  # () int32


class Following(NamedTuple):
    """The right-hand side of a backup."""

    actions: Array  # (n, size) a', between -1 and 1
    values: Array  # (n,) what the target takes s' to be worth


@dataclass(frozen=True)
class ContinuousMethod:
    """Two critics and a policy, trained side by side. A subclass has a `name` and a `policy_loss`.

    Losses are means over the two critics: to Adam that is the same as a loss for each, and a coefficient beside it
    means what it means for one critic. Both gradients are taken before either step is made.
    """

    name: ClassVar[str]
    TRACED: ClassVar[tuple[str, ...]] = ("target_period",)

    discount: float = 0.99
    """γ: what a reward one step later is worth."""

    learning_rate: float = 3e-4
    """Adam's step size for the critics, or that of another optimizer."""

    policy_learning_rate: float = 3e-4
    """The step size for the policy."""

    adam_epsilon: float = 1e-8
    """Adam's ε, the floor under the root of the second moment; AdamW's and RMSProp's, too."""

    optimizer: OptimizerName = field(default="adam", metadata=ADDED_LATER)
    """What takes the steps: adam, adamw, rmsprop (decay 0.9), or sgd, plain, which the theory is about."""

    weight_decay: float = field(default=WEIGHT_DECAY, metadata=ADDED_LATER)
    """adamw's: which share of a weight, times the step size, every step takes from it."""

    batch_size: int = 256
    """Rows per update, drawn with replacement; 0 takes the whole table each time."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the dense layers of the critics; the last one is the width of the features."""

    policy_hidden: tuple[int, ...] = (256, 256)
    """Widths of the policy's dense layers."""

    layer_norm: bool = field(default=False, metadata=ADDED_LATER)
    """LayerNorm before the ReLU of every hidden layer of the critics; the policy has none."""

    redo_every: int = field(default=0, metadata=ADDED_LATER)
    """ReDo: every so many updates units of the critics' dense layers that are silent are drawn anew; 0 is never."""

    redo_threshold: float = field(default=0.1, metadata=ADDED_LATER)
    """A unit is silent if its mean size is at most so many times that of its layer."""

    target_period: int = 1
    """Updates between two moves of the target network."""

    target_rate: float = 0.005
    """How far the target moves towards the critics each time; 1 copies them."""

    target_clip: bool = field(default=False, metadata=ADDED_LATER)
    """Clip targets to what the rewards in the data allow: r_min / (1 - γ) to r_max / (1 - γ)."""

    reward_scale: float = 1.0
    """Learn from scale · (r + shift): 4 for AntMaze, as in CQL's release. Policies are still evaluated with rewards as
    they are."""

    reward_shift: float = 0.0
    """See reward-scale: -0.5 for AntMaze in CQL's release, -1 (with scale 1) in IQL's."""

    channels: tuple[int, ...] = (16, 16, 16)
    """Where observations are pictures: filters of each convolution of an encoder."""

    encoder: Literal["pooled", "strided"] = field(default="pooled", metadata=ADDED_LATER)
    """Where observations are pictures: pooled, 3 x 3 convolutions of which all but the last halve the picture, for each
    network its own; or strided, patches of 4 x 4, then 3 x 3 with stride 2, shared by the critics: made for a CPU."""

    standardise: bool = field(default=False, metadata=ADDED_LATER)
    """Give each column of observations mean 0 and deviation 1 over the training rows. The networks do it themselves:
    whoever uses the policy gives it observations as they are."""

    crop: int = 0
    """Where observations are pictures: each update sees them moved by up to so many pixels in either direction."""

    # --- What it learns from ---

    def prepare(self, data: Transitions) -> Transitions:
        """The table with the rewards to learn from. (Monte-Carlo returns stay those of the rewards as logged.)"""
        if not isinstance(data.action_space, ContinuousActions):
            raise UserError(
                f"{self.name} needs continuous actions, but those of {data.name} are discrete; "
                "use cql (CQL), iql, dqn, rem or another method for discrete actions."
            )
        shape = tuple(data.observations.shape[1:])
        if len(shape) not in (1, 3):
            raise UserError(
                f"{self.name} needs observations that are vectors or pictures (height, width, channels); those of "
                f"{data.name} have the shape {shape}."
            )
        if self.crop and len(shape) != 3:
            raise UserError(
                f"crop is for pictures, but the observations of {data.name} are vectors, or have some among their "
                "parts: give --crop 0."
            )
        if self.standardise:
            check_vectors(data)
        data = scaled_rewards(data, self.reward_scale, self.reward_shift)
        return with_value_bounds(data, self.discount) if self.target_clip else data

    def check(self) -> None:
        """Refuse what nothing can be trained with: a method is asked when it is constructed."""
        within("discount", self.discount, 0, 1)
        within("learning_rate", self.learning_rate, 0)
        within("policy_learning_rate", self.policy_learning_rate, 0)
        within("adam_epsilon", self.adam_epsilon, 0)
        check_weight_decay(self.optimizer, self.weight_decay)
        within("batch_size", self.batch_size, 0)
        within("redo_every", self.redo_every, 0)
        within("redo_threshold", self.redo_threshold, 0)
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
        model = ActorCritic.create(
            spec.seen,
            space.size,
            hidden=self.hidden,
            policy_hidden=self.policy_hidden,
            low=space.low,
            high=space.high,
            key=key,
            channels=self.channels,
            layer_norm=self.layer_norm,
            standardisation=standardisation_for(spec, self.standardise),
            strided=self.encoder == "strided",
        )
        return Learner(
            model=model,
            target=model.critics,
            optimizer=self._optimizer.init(model.critics),
            policy_optimizer=self._policy_optimizer.init(model.policy),
            extras={},
            updates=jnp.zeros((), jnp.int32),
        )

    def start_from(self, learner: Learner, model: ActorCritic) -> Learner:
        """A fresh learner that knows what another one knew: critics, target and policy are its, optimizers are new."""
        return learner._replace(model=model, target=model.critics)

    def following(self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array) -> Following:
        """a' ~ π(·|s'), worth what the more pessimistic of the two target critics says.

        Args:
            policy: The policy; no gradient reaches it from here.
            learner: All that an update changes.
            batch: n rows.
            key: For whatever is drawn, such as a'.
        """
        drawn = policy(batch.next_observations).sample(key)
        return Following(drawn.actions, self.target_values(learner, batch, drawn.actions))

    def critic_loss(
        self, model: ActorCritic, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, tuple[Backup, Info]]:
        """The mean of (Q_k(s, a) - target)², the Backup, and what to log. A subclass may add terms.

        Args:
            model: Critics, which gradients are taken of, and policy.
            learner: All else, such as the target network.
            batch: n rows.
            key: For whatever the loss draws.
        """
        return self.td_loss(model.critics.states(batch.observations), model, learner, batch, key)

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """What the policy minimises, and what `update_extras` needs to know of it.

        Args:
            policy: The policy, which gradients are taken of.
            learner: All else, as it was before this update.
            batch: n rows.
            key: For whatever the loss draws.
        """
        raise NotImplementedError

    def update(
        self, learner: Learner, batch: Batch, key: Array, regularizer: Regularizer | None
    ) -> tuple[Learner, Array]:
        return self.actor_critic_step(learner, self.cropped(batch, key), key, regularizer)

    def actor_critic_step(
        self, learner: Learner, batch: Batch, key: Array, regularizer: Regularizer | None
    ) -> tuple[Learner, Array]:
        """One step of the critics, of the policy and of whatever else is trained; the critics' objective before it.

        Args:
            learner: All that an update changes.
            batch: n rows.
            key: For whatever the losses draw.
            regularizer: The term beside the critics' loss; None adds nothing.
        """
        model = learner.model

        def critic_objective(critics: TwinCritics) -> tuple[Array, Info]:
            loss, (_, info) = objective(
                self, regularizer, dataclasses.replace(model, critics=critics), learner, batch, key
            )
            return loss, info

        (before, info), gradient = jax.value_and_grad(critic_objective, has_aux=True)(model.critics)
        critics, optimizer = self._optimizer.step(model.critics, gradient, learner.optimizer)
        of_policy = jax.random.fold_in(key, POLICY_NOISE)
        policy, policy_optimizer, noted = self.policy_step(learner, batch, of_policy)
        moved = Learner(
            model=dataclasses.replace(model, critics=critics, policy=policy),
            target=learner.target,
            optimizer=optimizer,
            policy_optimizer=policy_optimizer,
            extras=self.update_extras(learner, {**info, **noted}),
            updates=learner.updates + 1,
        )
        return moved, before

    def policy_step(
        self, learner: Learner, batch: Batch, key: Array
    ) -> tuple[GaussianPolicy, optax.OptState, dict[str, Array]]:
        """One step of the policy: what it is then, its optimizer's memory, and what `update_extras` needs to know.

        Args:
            learner: It as it was before this update.
            batch: n rows.
            key: For whatever the policy's loss draws.
        """
        policy = learner.model.policy
        slope, noted = jax.grad(self.policy_loss, has_aux=True)(policy, learner, batch, key)
        return *self._policy_optimizer.step(policy, slope, learner.policy_optimizer), noted

    def recycle(self, learner: Learner, batch: Batch, key: Array) -> Learner:
        """ReDo: dormant units of the critics drawn anew, their moments cleared; called every `redo_every` updates.

        Args:
            learner: All that an update changes.
            batch: n rows, by whose activations a unit is judged.
            key: For the weights that are drawn.
        """
        model, critics = learner.model, learner.model.critics
        space = ContinuousActions(batch.actions.shape[-1], model.low, model.high)
        # Of what is drawn only layers are looked at, so that it matters not how observations are standardised.
        plain = dataclasses.replace(self, standardise=False)
        spec = Spec(tuple(batch.observations.shape[1:]), space, parts=parts_of(critics) or parts_of(critics.members[0]))
        fresh = plain.init(spec, key).model.critics
        states, actions = critics.states(batch.observations), model.to_unit(batch.actions)
        pairs = [
            recycle(own, drawn, own.outputs(seen, actions), self.redo_threshold)
            for own, drawn, seen in zip(critics.members, fresh.members, states, strict=True)
        ]
        # What stands beside the members, as IQL's V does, is left alone.
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, bool), critics)
        mended, changed = (
            dataclasses.replace(of, members=members)
            for of, members in zip((critics, nothing), zip(*pairs, strict=True), strict=True)
        )
        return learner._replace(
            model=dataclasses.replace(model, critics=mended), optimizer=cleared(learner.optimizer, changed)
        )

    def update_extras(self, learner: Learner, info: dict[str, Array]) -> dict[str, Trained]:
        """One step of whatever else is trained; a subclass that has some says so here.

        Args:
            learner: It as it was before this update.
            info: What the losses noted, by name.
        """
        return learner.extras

    def loss(self, model: ActorCritic, learner: Learner, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        """The critics' loss, by the name that all methods have for it."""
        return self.critic_loss(model, learner, batch, key)

    # --- What losses are made of ---

    def td_loss(
        self, states: States, model: ActorCritic, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, tuple[Backup, Info]]:
        """The TD error, given what the critics see of s: an encoder looks at it once, whatever else a loss asks of it.

        No gradient reaches the policy: not by a' in the target, not by phi(s', a').

        Args:
            states: What the critics' encoders make of s.
            model: Critics, which gradients are taken of, and policy.
            learner: All else, such as the target network.
            batch: n rows.
            key: For a', where it is drawn.
        """
        following = self.following(stop_gradient(model.policy), learner, batch, key)
        backup = self.backup(states, model, following, batch)
        td = jnp.mean((backup.values - backup.targets) ** 2)
        return td, (backup, {"losses/td": td})

    def backup(self, states: States, model: ActorCritic, following: Following, batch: Batch) -> Backup:
        """Both sides, with the targets r + γ(1 - d) · (value of s'), from the online critics' features.

        Args:
            states: What the critics' encoders make of s.
            model: Critics and policy.
            following: a' between -1 and 1, (n, size), and what s' is worth, (n,).
            batch: n rows.
        """
        phi = model.critics.features(states, model.to_unit(batch.actions))
        # Where nobody asks for it the compiler drops it, so that the base method does not pay.
        phi_next = model.critics.features(model.critics.states(batch.next_observations), following.actions)
        # A time-out is no terminal: it bootstraps.
        bootstraps = 1 - batch.terminals
        discounts = self.discount * bootstraps
        targets = batch.rewards + discounts * following.values
        return Backup(
            phi=phi,
            phi_next=phi_next,
            values=model.critics.values(phi),
            next_values=following.values,
            targets=stop_gradient(clipped(targets, batch) if self.target_clip else targets),
            bootstraps=bootstraps,
            discounts=discounts,
            actions=batch.actions,
            next_actions=model.to_range(following.actions),
            same_output=jnp.ones_like(bootstraps),
            rewards=batch.rewards,
            readout=jax.grad(lambda phi: jnp.sum(model.critics.values(phi)))(phi),
        )

    def target_values(self, learner: Learner, batch: Batch, actions: Array) -> Array:
        """min_k Q̄_k(s', a): (n, size) -> (n,).

        Args:
            learner: All that an update changes.
            batch: n rows.
            actions: a' between -1 and 1, (n, size).
        """
        return jnp.min(learner.target.q(learner.target.states(batch.next_observations), actions), axis=0)

    def online_values(self, learner: Learner, batch: Batch, actions: Array) -> Array:
        """min_k Q_k(s, a) of the online critics: (n, size) -> (n,).

        Args:
            learner: All that an update changes.
            batch: n rows.
            actions: Between -1 and 1, (n, size).
        """
        critics = learner.model.critics
        return jnp.min(critics.q(critics.states(batch.observations), actions), axis=0)

    def cropped(self, batch: Batch, key: Array) -> Batch:
        """What an update sees of a batch: s and s' of each row moved, either on its own. Measuring sees them as are.

        Args:
            batch: n rows.
            key: Of the update; places are drawn from it.
        """
        if not self.crop:
            return batch
        of_now, of_next = jax.random.split(jax.random.fold_in(key, CROPS))
        return batch._replace(
            observations=random_crops(batch.observations, self.crop, of_now),
            next_observations=random_crops(batch.next_observations, self.crop, of_next),
        )

    @property
    def synchronise_every(self) -> int | None:
        return self.target_period

    def synchronise(self, learner: Learner) -> Learner:
        return learner._replace(target=move(learner.target, learner.model.critics, self.target_rate))

    @property
    def _optimizer(self) -> Optimizer:
        return optimizer_for(self.optimizer, self.learning_rate, self.adam_epsilon, self.weight_decay)

    @property
    def _policy_optimizer(self) -> Optimizer:
        return optimizer_for(self.optimizer, self.policy_learning_rate, self.adam_epsilon, self.weight_decay)

    # --- Using what was learned ---

    def model(self, learner: Learner) -> ActorCritic:
        """Critics and policy: both are needed to act and to be looked at."""
        return learner.model

    def act(self, model: ActorCritic, observations: Array) -> Array:
        """The policy's mode, in the world's range."""
        return model.to_range(model.policy(observations).mode)

    def sample(self, model: ActorCritic, observations: Array, noise: Array) -> Array:
        """The policy's action for standard normal noise (n, size), in the world's range.

        Args:
            model: Critics and policy.
            observations: (n, *shape).
            noise: Standard normal numbers, (n, size).
        """
        return model.to_range(jnp.tanh(model.policy(observations).raw_at(noise)))

    def values(self, model: ActorCritic, observations: Array, actions: Array) -> Array:
        """Q(s, a), the mean of the critics."""
        return jnp.mean(model.critics.q(model.critics.states(observations), model.to_unit(actions)), axis=0)

    def features(self, model: ActorCritic, observations: Array, actions: Array) -> Array:
        """phi_k(s, a): (critics, n, d)."""
        return model.critics.features(model.critics.states(observations), model.to_unit(actions))
