"""What methods with one output per action have in common: the network, the update, the greedy policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.errors import UserError
from dr3.hyperparameters import check_settings, within
from dr3.methods.base import Info, Spec, objective
from dr3.networks import Critic, DiscreteCritic, Network, Trunk, trunk_for
from dr3.networks.at_once import at_once
from dr3.optimization import Adam, move
from dr3.regularizers import Regularizer


class Learner(NamedTuple):
    """All that an update changes."""

    critic: Critic
    target: Critic | None
    optimizer: optax.OptState


@dataclass(frozen=True)
class DiscreteMethod:
    """A critic trained by Adam on the subclass's loss. A subclass says its `name`."""

    name: ClassVar[str]

    discount: float = 0.99
    """γ: what a reward one step later is worth."""

    learning_rate: float = 3e-4
    """Adam's step size."""

    adam_epsilon: float = 1e-8
    """Adam's ε, the floor under the root of the second moment."""

    batch_size: int = 256
    """Rows per update, drawn with replacement; 0 takes the whole table each time."""

    network: Network = "auto"
    """What makes the features: dense layers, or convolutions for images; auto goes by the observations' shape. The
    Nature network pads as the paper's agents do; nature-valid does not, as the original and most code in PyTorch."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the dense layers; the last one is the width of the features."""

    normalise_features: bool = False
    """Give the features unit length before the last layer: the natural rival of DR3."""

    error: Literal["mse", "huber"] = "mse"
    """How an error e counts: e² (Eq. 1), or Huber: e²/2 up to 1 and |e| - 1/2 beyond, as on Atari."""

    # --- What it learns from ---

    def prepare(self, data: Transitions) -> Transitions:
        if not isinstance(data.action_space, DiscreteActions):
            raise UserError(
                f"{self.name} needs discrete actions, but those of {data.name} are continuous; use continuous-cql "
                "(ContinuousCQL), sac, brac or bc."
            )
        self.check()
        return data

    def check(self) -> None:
        """Refuse what nothing can be trained with. (Not on construction: JAX also builds methods from tracers.)"""
        check_settings(self)
        within("discount", self.discount, 0, 1)
        within("learning_rate", self.learning_rate, 0)
        within("adam_epsilon", self.adam_epsilon, 0)
        within("batch_size", self.batch_size, 0)
        within("the number of widths in hidden", len(self.hidden), 1)
        for width in self.hidden:
            within("every width in hidden", width, 1)

    # --- Learning ---

    def init(self, spec: Spec, key: Array) -> Learner:
        assert isinstance(spec.action_space, DiscreteActions)
        of_trunk, of_head = jax.random.split(key)
        shape, normalise = spec.observation_shape, self.normalise_features
        trunk = trunk_for(self.network, shape, self.hidden, key=of_trunk, normalise=normalise)
        critic = self.fresh_critic(trunk, spec.action_space.count, of_head)
        return Learner(critic, None, self._adam.init(critic))

    def fresh_critic(self, trunk: Trunk, actions: int, key: Array) -> Critic:
        """The last layer on a fresh trunk; a subclass with another one says so here."""
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
            looking = at_once(critic, batch) if getattr(regularizer, "reaches_next", False) else critic
            return objective(self, regularizer, looking, learner, batch, key)[0]

        before, gradient = jax.value_and_grad(total)(learner.critic)
        critic, optimizer = self._adam.step(learner.critic, gradient, learner.optimizer)
        return learner._replace(critic=critic, optimizer=optimizer), before

    @property
    def synchronise_every(self) -> int | None:
        return None

    def synchronise(self, learner: Learner) -> Learner:
        return learner

    @property
    def _adam(self) -> Adam:
        return Adam(self.learning_rate, self.adam_epsilon)

    def _mean_error(self, residuals: Array) -> Array:
        return jnp.mean(residuals**2 if self.error == "mse" else optax.huber_loss(residuals))

    # --- Using what was learned ---

    def critic(self, learner: Learner) -> Critic:
        return learner.critic

    def act(self, critic: Critic, observations: Array) -> Array:
        """The greedy action, the first of the best."""
        return jnp.argmax(critic.values(critic.features(observations)), axis=-1)

    def values(self, critic: Critic, observations: Array, actions: Array) -> Array:
        return chosen(critic.values(critic.features(observations)), actions)

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

    def check(self) -> None:
        super().check()
        within("target_period", self.target_period, 1)
        within("target_rate", self.target_rate, 0, 1)

    def bootstrap(self, online: Array, target: Array, batch: Batch) -> Bootstrap:
        """Choose a' given Q(s', ·) of the online and of the target network, each (n, A)."""
        raise NotImplementedError

    def init(self, spec: Spec, key: Array) -> Learner:
        learner = super().init(spec, key)
        return learner._replace(target=learner.critic)

    def loss(self, critic: Critic, learner: Learner, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        assert learner.target is not None
        # Features of s' under the online critic are for regularizers and instruments (and double Q-learning); where
        # nobody asks for them the compiler drops them, so the base method does not pay.
        phi, phi_next = critic.features(batch.observations), critic.features(batch.next_observations)
        backup = self.backup(critic, learner.target, phi, phi_next, batch)
        td = self._mean_error(backup.values - backup.targets)
        return td, (backup, {"losses/td": td})

    def backup(self, critic: Critic, target: Critic, phi: Array, phi_next: Array, batch: Batch) -> Backup:
        """Both sides, with the targets r + γ(1 - d) · (value of s'), from the online critic's features."""
        at_next = target.values(target.features(batch.next_observations))
        following = self.bootstrap(critic.values(phi_next), at_next, batch)
        # A time-out is no terminal: it bootstraps.
        bootstraps = 1 - batch.terminals
        discounts = self.discount * bootstraps
        return Backup(
            phi=phi,
            phi_next=phi_next,
            values=chosen(critic.values(phi), batch.actions),
            next_values=following.values,
            targets=jax.lax.stop_gradient(batch.rewards + discounts * following.values),
            bootstraps=bootstraps,
            discounts=discounts,
            actions=batch.actions,
            next_actions=following.actions,
            same_output=following.same_output,
        )

    @property
    def synchronise_every(self) -> int | None:
        return self.target_period

    def synchronise(self, learner: Learner) -> Learner:
        return learner._replace(target=move(learner.target, learner.critic, self.target_rate))


def chosen(values: Array, actions: Array) -> Array:
    """The entries of (n, A) that (n,) actions point at: (n,)."""
    return jnp.take_along_axis(values, actions[:, None], axis=-1)[:, 0]
