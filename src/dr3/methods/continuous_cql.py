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
from dr3.methods.continuous import Following, Learner, Trained
from dr3.methods.sac import SAC
from dr3.networks import ActorCritic, GaussianPolicy, TwinCritics
from dr3.networks.action_critic import States
from dr3.networks.kernels.blocks import blocks_for

LARGEST_MULTIPLIER = 1e6
CACHED = 2**21  # bytes of one layer's outputs for a block of states


@hyperparameters
@dataclass(frozen=True)
class ContinuousCQL(SAC):
    """CQL(H) for continuous actions: loss = TD + α E[log ∫ exp Q(s, a) da - Q(s, a_logged)] for each critic.

    The integral is estimated by importance sampling at s: log Σ exp(Q(s, a) - log p(a)) over uniform actions, actions
    of π(·|s) and actions of π(·|s'), without dividing by their number, as in the release ("version 3"). The TD error
    is e², without the paper's ½: with it the same α would count twice as much.
    """

    name: ClassVar[str] = "continuous-cql"

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

    policy_learning_rate: float = 1e-4
    hidden: tuple[int, ...] = (256, 256, 256)
    policy_hidden: tuple[int, ...] = (256, 256, 256)
    entropy_backup: bool = False

    def check(self) -> None:
        super().check()
        within("alpha", self.alpha, 0)
        within("sampled_actions", self.sampled_actions, 1)
        within("warm_start", self.warm_start, 0)
        if self.lagrange is not None:
            within("lagrange", self.lagrange, 0)

    def init(self, spec: Spec, key: Array) -> Learner:
        learner = super().init(spec, key)
        if self.lagrange is None:
            return learner
        log_multiplier = jnp.zeros(())
        trained = Trained(log_multiplier, self._adam.init(log_multiplier))
        return learner._replace(extras={**learner.extras, "lagrange": trained})

    def start_from(self, learner: Learner, critic: ActorCritic) -> Learner:
        """Also past the warm start: cloning would undo the policy that was given."""
        started = super().start_from(learner, critic)
        return started._replace(updates=jnp.asarray(self.warm_start, jnp.int32))

    def loss_at(
        self, states: States, critic: ActorCritic, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, tuple[Backup, Info]]:
        of_td, of_gap = jax.random.split(key)
        td, (backup, info) = super().loss_at(states, critic, learner, batch, of_td)
        gap = self.gap(states, critic, backup, batch, of_gap)
        info = {**info, "losses/cql": gap}
        if self.lagrange is None:
            return td + self.alpha * gap, (backup, info)
        multiplier = _multiplier(learner)
        info = {**info, "losses/lagrange": multiplier}
        return td + multiplier * (self.alpha * gap - self.lagrange), (backup, info)

    def gap(self, states: States, critic: ActorCritic, backup: Backup, batch: Batch, key: Array) -> Array:
        """log Σ exp(Q_k(s, a) - log p(a)) - Q_k(s, a_logged), the mean over rows and critics."""
        policy, count = stop_gradient(critic.policy), self.sampled_actions
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
        return mean_over_rows(_log_sum, critic.critics, states, drawn, blocks) - jnp.mean(backup.values)

    def following(self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array) -> Following:
        if not self.max_backup:
            return super().following(policy, learner, batch, key)
        drawn = policy(batch.next_observations).sample(key, self.sampled_actions).actions
        values = learner.target.q(learner.target.states(batch.next_observations), drawn)  # (critics, count, n)
        # The a' that regularizers see is the best one by the critics' mean; the value is the release's.
        best = jnp.argmax(jnp.mean(values, axis=0), axis=0)
        chosen = jnp.take_along_axis(drawn, best[None, :, None], axis=0)[0]
        return Following(chosen, jnp.min(jnp.max(values, axis=1), axis=0))

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """SAC's, and in the first updates E[α log π(a|s) - log π(a_logged|s)]."""
        at_states = policy(batch.observations)
        drawn = at_states.sample(key)
        worth = self.worth(learner, batch, drawn.actions)
        likelihood = at_states.log_density(learner.critic.to_unit(batch.actions))
        sought = jnp.where(learner.updates < self.warm_start, likelihood, worth)
        loss = jnp.mean(self.alpha_now(learner) * drawn.log_density - sought)
        return loss, {"log_density": jnp.mean(drawn.log_density)}

    def adjust(self, learner: Learner, info: dict[str, Array]) -> Learner:
        """Also one step of log α' uphill on α' · (α gap - threshold): it grows while the gap is too large."""
        moved = super().adjust(learner, info)
        if self.lagrange is None:
            return moved
        log_multiplier, memory = learner.extras["lagrange"]
        uphill = _multiplier(learner) * (self.alpha * info["losses/cql"] - self.lagrange)
        stepped = self._adam.step(log_multiplier, -uphill, memory)
        return moved._replace(extras={**moved.extras, "lagrange": Trained(*stepped)})


def _log_sum(critics: TwinCritics, states: States, drawn: tuple[Array, Array]) -> Array:
    """log Σ exp(Q_k(s, a) - log p(a)) over actions (n, m, size) with log densities (n, m): (critics, n)."""
    actions, log_densities = (jnp.moveaxis(x, 1, 0) for x in drawn)
    return jax.nn.logsumexp(critics.q(states, actions) - log_densities, axis=1)


def _multiplier(learner: Learner) -> Array:
    return jnp.clip(jnp.exp(learner.extras["lagrange"].parameters), 0.0, LARGEST_MULTIPLIER)
