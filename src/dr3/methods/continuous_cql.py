"""Conservative Q-learning with continuous actions (Kumar et al., 2020; appendix E.1), as CQL's release computes it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.hyperparameters import hyperparameters, within
from dr3.methods.base import Info, Spec
from dr3.methods.blockwise import mean_over_rows
from dr3.methods.continuous import ContinuousMethod, Following, Learner, Trained
from dr3.methods.temperature import fresh_temperature, temperature_now, temperature_step
from dr3.networks import ActorCritic, GaussianPolicy, TwinCritics
from dr3.networks.action_critic import States
from dr3.networks.kernels.blocks import blocks_for

LARGEST_MULTIPLIER = 1e6
CACHED = 2**21  # bytes of one layer's outputs for a block of states


@hyperparameters
@dataclass(frozen=True)
class ContinuousCQL(ContinuousMethod):
    """CQL(H) for continuous actions: loss = TD + α E[log ∫ exp Q(s, a) da - Q(s, a_logged)] for each critic.

    The integral is estimated by importance sampling at s: log Σ exp(Q(s, a) - log p(a)) over uniform actions, actions
    of π(·|s) and actions of π(·|s'), without dividing by their number, as in the release ("version 3"). The TD error
    is e², without the paper's ½: with it the same α would count twice as much. The policy is SAC's.
    """

    name: ClassVar[str] = "continuous-cql"
    LEARNER_TERMS: ClassVar[tuple[str, ...]] = ("entropy_backup",)  # τ is the learner's

    alpha: float = 5.0
    """The weight of the conservative term; 5 for AntMaze, Kitchen and MuJoCo in the paper."""

    sampled_actions: int = 10
    """How many actions of each of the three kinds estimate the integral."""

    lagrange: float | None = None
    """Instead of α alone, α times a multiplier that keeps α · gap near this threshold (AntMaze in the release: 5)."""

    max_backup: bool = False
    """Bootstrap from the largest of `sampled_actions` values of a' ~ π, for each critic, then the smaller one."""

    warm_start: int = 40_000
    """Updates in which the policy maximises log π(a_logged|s) in the place of Q."""

    entropy_backup: bool = False
    """Whether -τ log π(a'|s') is part of the targets, as in SAC, with τ its temperature."""

    target_entropy: float | None = None
    """The entropy that τ keeps, of actions scaled to ±1; by default minus the number of their dimensions."""

    temperature: float | None = None
    """τ held at this value instead of learned."""

    policy_learning_rate: float = 1e-4
    hidden: tuple[int, ...] = (256, 256, 256)
    policy_hidden: tuple[int, ...] = (256, 256, 256)

    def check(self) -> None:
        super().check()
        within("alpha", self.alpha, 0)
        within("sampled_actions", self.sampled_actions, 1)
        within("warm_start", self.warm_start, 0)
        if self.lagrange is not None:
            within("lagrange", self.lagrange, 0)
        if self.temperature is not None:
            within("temperature", self.temperature, 0)

    def init(self, spec: Spec, key: Array) -> Learner:
        extras = {"temperature": fresh_temperature(self._policy_optimizer)}
        if self.lagrange is not None:
            extras["lagrange"] = Trained.fresh(jnp.zeros(()), self._optimizer)
        return super().init(spec, key)._replace(extras=extras)

    def start_from(self, learner: Learner, model: ActorCritic) -> Learner:
        """Also past the warm start: cloning would undo the policy that was given."""
        started = super().start_from(learner, model)
        return started._replace(updates=jnp.asarray(self.warm_start, jnp.int32))

    def following(self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array) -> Following:
        at_next = policy(batch.next_observations)
        if not self.max_backup:
            drawn = at_next.sample(key)
            values = self.target_values(learner, batch, drawn.actions)
            if self.entropy_backup:
                values = values - temperature_now(self.temperature, learner) * drawn.log_density
            return Following(drawn.actions, values)
        several = at_next.sample(key, self.sampled_actions).actions
        values = learner.target.q(learner.target.states(batch.next_observations), several)  # (critics, count, n)
        # The a' that regularizers see is the best one by the critics' mean; the value is the release's.
        best = jnp.argmax(jnp.mean(values, axis=0), axis=0)
        chosen = jnp.take_along_axis(several, best[None, :, None], axis=0)[0]
        return Following(chosen, jnp.min(jnp.max(values, axis=1), axis=0))

    def critic_loss(
        self, model: ActorCritic, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, tuple[Backup, Info]]:
        """TD + α · gap, or TD + α' (α · gap - threshold) with the multiplier α'."""
        of_td, of_gap = jax.random.split(key)
        states = model.critics.states(batch.observations)
        td, (backup, info) = self.td_loss(states, model, learner, batch, of_td)
        gap = self.gap(states, model, backup, batch, of_gap)
        info = {**info, "losses/temperature": temperature_now(self.temperature, learner), "losses/cql": gap}
        if self.lagrange is None:
            return td + self.alpha * gap, (backup, info)
        multiplier = _multiplier(learner)
        info = {**info, "losses/lagrange": multiplier}
        return td + multiplier * (self.alpha * gap - self.lagrange), (backup, info)

    def gap(self, states: States, model: ActorCritic, backup: Backup, batch: Batch, key: Array) -> Array:
        """log Σ exp(Q_k(s, a) - log p(a)) - Q_k(s, a_logged), the mean over rows and critics.

        Args:
            states: What the critics' encoders make of s.
            model: Critics, which gradients are taken of, and policy.
            backup: Both sides of the batch.
            batch: n rows.
            key: For the actions that are sampled.
        """
        policy, count = stop_gradient(model.policy), self.sampled_actions
        of_uniform, of_here, of_next = jax.random.split(key, 3)
        here = policy(batch.observations).sample(of_here, count)
        following = policy(batch.next_observations).sample(of_next, count)
        uniform = jax.random.uniform(of_uniform, here.actions.shape, minval=-1.0, maxval=1.0)
        log_uniform = jnp.full(here.log_density.shape, here.actions.shape[-1] * math.log(0.5))
        actions = jnp.concatenate([uniform, following.actions, here.actions])  # (3 · count, n, size)
        log_densities = jnp.concatenate([log_uniform, following.log_density, here.log_density])
        drawn = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), (actions, log_densities))
        # Nearly all of an update is here: 3 · count values for each row, and their gradient.
        blocks = blocks_for(len(batch.rewards), 4 * 3 * count * max(self.hidden), CACHED)
        return mean_over_rows(_log_sum, model.critics, states, drawn, blocks) - jnp.mean(backup.values)

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """SAC's, and in the first updates E[τ log π(a|s) - log π(a_logged|s)]."""
        at_states = policy(batch.observations)
        drawn = at_states.sample(key)
        values = self.online_values(learner, batch, drawn.actions)
        likelihood = at_states.log_density(learner.model.to_unit(batch.actions))
        sought = jnp.where(learner.updates < self.warm_start, likelihood, values)
        loss = jnp.mean(temperature_now(self.temperature, learner) * drawn.log_density - sought)
        return loss, {"log_density": jnp.mean(drawn.log_density)}

    def update_extras(self, learner: Learner, info: dict[str, Array]) -> dict[str, Trained]:
        """A step of log τ, and one of log α' uphill on α' · (α gap - threshold): it grows while the gap is large."""
        moved = dict(learner.extras)
        if self.temperature is None:
            log_density = info["log_density"]
            moved["temperature"] = temperature_step(learner, log_density, self.target_entropy, self._policy_optimizer)
        if self.lagrange is not None:
            uphill = _multiplier(learner) * (self.alpha * info["losses/cql"] - self.lagrange)
            moved["lagrange"] = moved["lagrange"].step(-uphill, self._optimizer)
        return moved


def _log_sum(critics: TwinCritics, states: States, drawn: tuple[Array, Array]) -> Array:
    """log Σ exp(Q_k(s, a) - log p(a)) over actions (n, m, size) with log densities (n, m): (critics, n)."""
    actions, log_densities = (jnp.moveaxis(x, 1, 0) for x in drawn)
    return jax.nn.logsumexp(critics.q(states, actions) - log_densities, axis=1)


def _multiplier(learner: Learner) -> Array:
    return jnp.clip(jnp.exp(learner.extras["lagrange"].parameters), 0.0, LARGEST_MULTIPLIER)
