"""What methods with one output per action have in common: the network, the update, the greedy policy."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.errors import UserError
from dr3.hyperparameters import ADDED_LATER, within
from dr3.methods.base import Info, Spec, objective
from dr3.methods.target_clip import clipped, with_value_bounds
from dr3.methods.units import check_vectors, scaled_rewards, standardisation_for
from dr3.networks import Critic, DiscreteCritic, Network, Trunk, trunk_for
from dr3.networks.dormant import recycle
from dr3.networks.kernels.both_sides import both_sides, in_one_pass
from dr3.networks.mixed import parts_of
from dr3.optimization import WEIGHT_DECAY, Optimizer, OptimizerName, check_weight_decay, cleared, move, optimizer_for
from dr3.regularizers import Regularizer


class Learner(NamedTuple):
    """All that an update changes."""

    critic: Critic
    target: Critic | None
    optimizer: optax.OptState


@dataclass(frozen=True)
class DiscreteMethod:
    """A critic trained on the subclass's loss. A subclass says its `name`."""

    name: ClassVar[str]

    discount: float = 0.99
    """γ: what a reward one step later is worth."""

    learning_rate: float = 3e-4
    """Adam's step size, or that of another optimizer."""

    adam_epsilon: float = 1e-8
    """Adam's ε, the floor under the root of the second moment; AdamW's and RMSProp's, too."""

    optimizer: OptimizerName = field(default="adam", metadata=ADDED_LATER)
    """What takes the steps: adam, adamw, rmsprop (decay 0.9), or sgd, plain, which the theory is about."""

    weight_decay: float = field(default=WEIGHT_DECAY, metadata=ADDED_LATER)
    """adamw's: which share of a weight, times the step size, every step takes from it."""

    batch_size: int = 256
    """Rows per update, drawn with replacement; 0 takes the whole table each time."""

    network: Network = "auto"
    """What makes the features: dense layers, or convolutions for images; auto goes by the observations' shape. The
    Nature network pads as the paper's agents do; nature-valid does not, as the original and most code in PyTorch."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the dense layers; the last one is the width of the features."""

    normalise_features: bool = False
    """Give the features unit length before the last layer: the natural rival of DR3."""

    layer_norm: bool = field(default=False, metadata=ADDED_LATER)
    """LayerNorm before the ReLU of every hidden layer of the critic."""

    hyperspherical: bool = field(default=False, metadata=ADDED_LATER)
    """Features and weights of unit length in every dense layer, as in SimbaV2; the last layer stays as it is."""

    redo_every: int = field(default=0, metadata=ADDED_LATER)
    """ReDo: every so many updates hidden units of the critic that have gone silent are drawn anew; 0 is never."""

    redo_threshold: float = field(default=0.1, metadata=ADDED_LATER)
    """A unit is silent if its mean size is at most so many times that of its layer."""

    error: Literal["mse", "huber"] = "mse"
    """How an error e counts: e² (Eq. 1), or Huber: e²/2 up to 1 and |e| - 1/2 beyond, as on Atari."""

    standardise: bool = field(default=False, metadata=ADDED_LATER)
    """Give each column of observations mean 0 and deviation 1 over the training rows. The networks do it themselves:
    whoever uses the policy gives it observations as they are."""

    reward_scale: float = field(default=1.0, metadata=ADDED_LATER)
    """Learn from scale · (r + shift); Q is in these units. Policies are still evaluated with rewards as they are."""

    reward_shift: float = field(default=0.0, metadata=ADDED_LATER)
    """See reward-scale."""

    # --- What it learns from ---

    def prepare(self, data: Transitions) -> Transitions:
        if not isinstance(data.action_space, DiscreteActions):
            raise UserError(
                f"{self.name} needs discrete actions, but those of {data.name} are continuous; use continuous-cql "
                "(ContinuousCQL), continuous-iql, td3-bc, rebrac, sac, brac or bc."
            )
        # Not before training: as a formula a critic that is linear in s makes sense, with no features to learn.
        within("the number of widths in hidden", len(self.hidden), 1)
        if self.standardise:
            check_vectors(data)
        return scaled_rewards(data, self.reward_scale, self.reward_shift)

    def check(self) -> None:
        """Refuse what nothing can be trained with: a method is asked when it is constructed."""
        within("discount", self.discount, 0, 1)
        within("learning_rate", self.learning_rate, 0)
        within("adam_epsilon", self.adam_epsilon, 0)
        check_weight_decay(self.optimizer, self.weight_decay)
        within("batch_size", self.batch_size, 0)
        within("reward_scale", self.reward_scale, 0)
        within("redo_every", self.redo_every, 0)
        if self.hyperspherical and (self.layer_norm or self.normalise_features):
            raise UserError(
                "hyperspherical features have unit length already: leave out layer_norm, normalise_features."
            )
        within("redo_threshold", self.redo_threshold, 0)
        for width in self.hidden:
            within("every width in hidden", width, 1)

    # --- Learning ---

    def init(self, spec: Spec, key: Array) -> Learner:
        assert isinstance(spec.action_space, DiscreteActions)
        of_trunk, of_head = jax.random.split(key)
        critic = self.fresh_critic(self._trunk(spec, of_trunk), spec.action_space.count, of_head)
        return Learner(critic, None, self._optimizer.init(critic))

    def _trunk(self, spec: Spec, key: Array) -> Trunk:
        return trunk_for(
            self.network,
            spec.seen,
            self.hidden,
            key=key,
            normalise=self.normalise_features,
            layer_norm=self.layer_norm,
            hyperspherical=self.hyperspherical,
            standardisation=standardisation_for(spec, self.standardise),
        )

    def fresh_network(self, spec: Spec, outputs: int, key: Array) -> DiscreteCritic:
        """Another network like the critic, for a subclass that has a policy or a value beside it.

        Args:
            spec: What it must fit.
            outputs: How many numbers it gives for a state.
            key: For its weights.
        """
        of_trunk, of_head = jax.random.split(key)
        return DiscreteCritic.create(self._trunk(spec, of_trunk), outputs, key=of_head)

    def fresh_critic(self, trunk: Trunk, actions: int, key: Array) -> Critic:
        """The last layer on a fresh trunk; a subclass with another one says so here.

        Args:
            trunk: Gives features, (n, d).
            actions: How many there are.
            key: For the weights of the last layer.
        """
        return DiscreteCritic.create(trunk, actions, key=key)

    def start_from(self, learner: Learner, critic: Critic) -> Learner:
        """A fresh learner that knows what another critic knew: critic and target are that one, the optimizer is new."""
        return learner._replace(critic=critic, target=None if learner.target is None else critic)

    def loss(self, critic: Critic, learner: Learner, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        raise NotImplementedError

    def update(
        self, learner: Learner, batch: Batch, key: Array, regularizer: Regularizer | None
    ) -> tuple[Learner, Array]:
        def total(critic: Critic) -> Array:
            critic = in_one_pass(critic) if getattr(regularizer, "reaches_next", False) else critic
            return objective(self, regularizer, critic, learner, batch, key)[0]

        before, gradient = jax.value_and_grad(total)(learner.critic)
        critic, optimizer = self._optimizer.step(learner.critic, gradient, learner.optimizer)
        return learner._replace(critic=critic, optimizer=optimizer), before

    def recycle(self, learner: Learner, batch: Batch, key: Array) -> Learner:
        """ReDo: dormant units of the critic drawn anew, their moments cleared; called every `redo_every` updates.

        Args:
            learner: All that an update changes.
            batch: n rows, by whose activations a unit is judged.
            key: For the weights that are drawn.
        """
        critic = learner.critic
        values = jax.eval_shape(lambda: critic.values(critic.features(batch.observations)))
        shape, parts = tuple(batch.observations.shape[1:]), parts_of(critic.trunk)
        spec = Spec(shape, DiscreteActions(values.shape[-1]), parts=parts)
        # Of what is drawn only layers are looked at, so that it matters not how observations are standardised.
        fresh = dataclasses.replace(self, standardise=False).init(spec, key).critic
        outputs = critic.trunk.outputs(batch.observations)
        mended, changed = recycle(critic, fresh, outputs, self.redo_threshold)
        return learner._replace(critic=mended, optimizer=cleared(learner.optimizer, changed))

    @property
    def synchronise_every(self) -> int | None:
        return None

    def synchronise(self, learner: Learner) -> Learner:
        return learner

    @property
    def _optimizer(self) -> Optimizer:
        return optimizer_for(self.optimizer, self.learning_rate, self.adam_epsilon, self.weight_decay)

    def _mean_error(self, residuals: Array) -> Array:
        return jnp.mean(residuals**2 if self.error == "mse" else optax.huber_loss(residuals))

    # --- Using what was learned ---

    def model(self, learner: Learner) -> Critic:
        return learner.critic

    def act(self, critic: Critic, observations: Array) -> Array:
        """The greedy action, the first of the best."""
        return jnp.argmax(self.action_values(critic, observations), axis=-1)

    def values(self, critic: Critic, observations: Array, actions: Array) -> Array:
        return chosen(self.action_values(critic, observations), actions)

    def action_values(self, critic: Critic, observations: Array) -> Array:
        """Q(s, ·): (n, A).

        Args:
            critic: The critic.
            observations: (n, *shape).
        """
        return critic.values(critic.features(observations))

    def features(self, critic: Critic, observations: Array, actions: Array) -> Array:
        """phi(s), whatever the action."""
        return critic.features(observations)


class Bootstrap(NamedTuple):
    """The right-hand side of a backup: which a' a method looks at, and what it takes s' to be worth."""

    values: Array  # (n,) the value of s' under the target network
    actions: Array  # (n,) a'; the likeliest one where the method takes an expectation
    same_output: Array  # (n,) probability that a' is a: then both read the same row of the last layer


@dataclass(frozen=True)
class BootstrappedMethod(DiscreteMethod):
    """TD-learning with a delayed copy of the critic (Eq. 1). Methods differ in the a' they bootstrap from."""

    TRACED: ClassVar[tuple[str, ...]] = ("target_period",)

    target_period: int = 100
    """Updates between two moves of the target network."""

    target_rate: float = 1.0
    """How far the target moves towards the critic: 1 copies it (hard); 0.005 with period 1 trails it (soft)."""

    target_clip: bool = field(default=False, metadata=ADDED_LATER)
    """Clip targets to what the rewards in the data allow: r_min / (1 - γ) to r_max / (1 - γ)."""

    def prepare(self, data: Transitions) -> Transitions:
        data = super().prepare(data)
        return with_value_bounds(data, self.discount) if self.target_clip else data

    def check(self) -> None:
        super().check()
        within("target_period", self.target_period, 1)
        within("target_rate", self.target_rate, 0, 1)

    def bootstrap(self, online: Array, target: Array, batch: Batch) -> Bootstrap:
        """Choose a' given Q(s', ·) of the online and of the target network, each (n, A).

        Args:
            online: Q(s', ·) of the critic that is trained, (n, A).
            target: The same of its target network, (n, A).
            batch: n rows.
        """
        raise NotImplementedError

    def init(self, spec: Spec, key: Array) -> Learner:
        learner = super().init(spec, key)
        return learner._replace(target=learner.critic)

    def loss(self, critic: Critic, learner: Learner, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        assert learner.target is not None
        # Features of s' under the online critic are for regularizers and instruments (and double Q-learning); where
        # nobody asks for them the compiler drops them, so the base method does not pay.
        phi, phi_next = both_sides(critic, batch)
        backup = self.backup(critic, learner.target, phi, phi_next, batch)
        td = self._mean_error(backup.values - backup.targets)
        return td, (backup, {"losses/td": td})

    def backup(self, critic: Critic, target: Critic, phi: Array, phi_next: Array, batch: Batch) -> Backup:
        """Both sides, with the targets r + γ(1 - d) · (value of s'), from the online critic's features.

        Args:
            critic: The critic that is trained.
            target: Its target network.
            phi: φ(s), (n, d).
            phi_next: φ(s') of the critic that is trained, (n, d).
            batch: n rows.
        """
        at_next = target.values(target.features(batch.next_observations))
        return self.tie(critic, phi, phi_next, self.bootstrap(critic.values(phi_next), at_next, batch), batch)

    def tie(self, critic: Critic, phi: Array, phi_next: Array, following: Bootstrap, batch: Batch) -> Backup:
        """The Backup of a right-hand side.

        Args:
            critic: The critic that is trained.
            phi: φ(s), (n, d).
            phi_next: φ(s') of the same critic, (n, d).
            following: a', and what s' is worth.
            batch: n rows.
        """
        # A time-out is no terminal: it bootstraps.
        bootstraps = 1 - batch.terminals
        discounts = self.discount * bootstraps
        targets = batch.rewards + discounts * following.values
        return Backup(
            phi=phi,
            phi_next=phi_next,
            values=chosen(critic.values(phi), batch.actions),
            next_values=following.values,
            targets=jax.lax.stop_gradient(clipped(targets, batch) if self.target_clip else targets),
            bootstraps=bootstraps,
            discounts=discounts,
            actions=batch.actions,
            next_actions=following.actions,
            same_output=following.same_output,
            rewards=batch.rewards,
            readout=readout(critic, phi, batch.actions),
        )

    @property
    def synchronise_every(self) -> int | None:
        return self.target_period

    def synchronise(self, learner: Learner) -> Learner:
        return learner._replace(target=move(learner.target, learner.critic, self.target_rate))


def chosen(values: Array, actions: Array) -> Array:
    """The entries of (n, A) that (n,) actions point at: (n,)."""
    return jnp.take_along_axis(values, actions[:, None], axis=-1)[:, 0]


def readout(critic: Critic, phi: Array, actions: Array) -> Array:
    """∂Q(s, a)/∂phi of every row: with a linear last layer its row for a, (n, d)."""
    return jax.grad(lambda phi: jnp.sum(chosen(critic.values(phi), actions)))(phi)
