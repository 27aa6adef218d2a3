"""BRAC: behaviour-regularized actor-critic (Wu et al., 2019), in the paper's own form and in that of its release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jax import Array

from dr3.data.batch import Batch
from dr3.hyperparameters import hyperparameters, within
from dr3.methods.base import Spec
from dr3.methods.continuous import ContinuousMethod, Following, Learner, Trained
from dr3.methods.units import standardisation_for
from dr3.networks import GaussianPolicy
from dr3.networks.gaussian_policy import Sample
from dr3.optimization import Optimizer, optimizer_for
from dr3.regularizers import Regularizer

BEHAVIOR = 2  # which part of a learner's key draws the behaviour policy's weights


@hyperparameters
@dataclass(frozen=True)
class BRAC(ContinuousMethod):
    """BRAC: an actor-critic that pays for leaving the behaviour policy, in its targets and in its policy.

    The paper's form (appendix E.1): targets r + γ (Q̄(s', a') + β log π_β(a'|s')), and the policy maximises
    Q(s, a) + β log π_β(a|s) - α log π(a|s). The release's: with D(s) = E_a[log π(a|s) - log π_β(a|s)], targets
    r + γ (Q̄(s', a') - β D(s')), and the policy maximises Q(s, a) - β D(s). Q̄ and Q are the smaller of two critics.

    A run begins with `behavior_steps` updates that only clone π_β from the logged actions; then it is frozen. They are
    updates like others, counted in `--steps`.
    """

    name: ClassVar[str] = "brac"
    LEARNER_TERMS: ClassVar[tuple[str, ...]] = ("value_penalty",)  # π_β is the learner's

    form: Literal["paper", "kl"] = "paper"
    """What is paid: the paper's log π_β, or the release's KL divergence D."""

    behavior_weight: float = 0.1
    """β: what leaving the behaviour policy costs. The paper gives no number."""

    entropy_weight: float = 0.1
    """α: what the policy's entropy earns, in the paper's form only, as the KL divergence has it in it. The paper
    gives no number."""

    value_penalty: bool = True
    """Whether the targets pay, too; without it the policy alone does (BRAC-p)."""

    behavior_steps: int = 20_000
    """Updates at the start of a run that clone the behaviour policy; 300,000 in the release."""

    behavior_learning_rate: float = 5e-4
    """The step size for the behaviour policy."""

    divergence_samples: int = 4
    """Actions that estimate D(s), in the KL form."""

    warm_start: int = 0
    """Updates after cloning in which the policy follows the penalty alone; 20,000 in the release."""

    def check(self) -> None:
        super().check()
        within("behavior_weight", self.behavior_weight, 0)
        within("entropy_weight", self.entropy_weight, 0)
        within("behavior_steps", self.behavior_steps, 0)
        within("behavior_learning_rate", self.behavior_learning_rate, 0)
        within("divergence_samples", self.divergence_samples, 1)
        within("warm_start", self.warm_start, 0)

    def init(self, spec: Spec, key: Array) -> Learner:
        learner = super().init(spec, key)
        size, of_behavior = learner.model.policy.size, jax.random.fold_in(key, BEHAVIOR)
        behavior = GaussianPolicy.create(
            spec.seen,
            size,
            self.policy_hidden,
            key=of_behavior,
            channels=self.channels,
            standardisation=standardisation_for(spec, self.standardise),
            strided=self.encoder == "strided",
        )
        return learner._replace(extras={"behavior": Trained.fresh(behavior, self._behavior_optimizer)})

    def following(self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array) -> Following:
        drawn = policy(batch.next_observations).sample(key, self._samples)
        # One a' bootstraps, the first; in the KL form the others only help to estimate D(s').
        values = self.target_values(learner, batch, drawn.actions[0])
        if self.value_penalty:
            likelihood = _behavior(learner)(batch.next_observations).log_density_at(drawn.raw)
            values = values - self.behavior_weight * self._behavior_penalty(drawn, likelihood)
        return Following(drawn.actions[0], values)

    def policy_loss(
        self, policy: GaussianPolicy, learner: Learner, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        drawn = policy(batch.observations).sample(key, self._samples)
        values = self.online_values(learner, batch, drawn.actions[0])
        values = jnp.where(learner.updates < self.behavior_steps + self.warm_start, 0.0, values)
        likelihood = _behavior(learner)(batch.observations).log_density_at(drawn.raw)
        cost = self.behavior_weight * self._behavior_penalty(drawn, likelihood)
        if self.form == "paper":
            cost = cost + self.entropy_weight * drawn.log_density[0]
        return jnp.mean(cost - values), {}

    def _behavior_penalty(self, drawn: Sample, likelihood: Array) -> Array:
        """-log π_β(a|s) in the paper's form, D(s) in the other: (n,)."""
        return -likelihood[0] if self.form == "paper" else jnp.mean(drawn.log_density - likelihood, axis=0)

    @property
    def _samples(self) -> int:
        return 1 if self.form == "paper" else self.divergence_samples

    # --- The two phases of a run ---

    def update(
        self, learner: Learner, batch: Batch, key: Array, regularizer: Regularizer | None
    ) -> tuple[Learner, Array]:
        seen = self.cropped(batch, key)
        return jax.lax.cond(
            learner.updates < self.behavior_steps,
            lambda learner: self.clone(learner, seen),
            lambda learner: self.actor_critic_step(learner, seen, key, regularizer),
            learner,
        )

    def clone(self, learner: Learner, batch: Batch) -> tuple[Learner, Array]:
        """One step of π_β on -log π_β(a|s), and that loss.

        Args:
            learner: All that an update changes.
            batch: n rows.
        """
        actions = learner.model.to_unit(batch.actions)

        def loss(behavior: GaussianPolicy) -> Array:
            return -jnp.mean(behavior(batch.observations).log_density(actions))

        before, gradient = jax.value_and_grad(loss)(_behavior(learner))
        moved = learner.extras["behavior"].step(gradient, self._behavior_optimizer)
        return learner._replace(extras={"behavior": moved}, updates=learner.updates + 1), before

    @property
    def _behavior_optimizer(self) -> Optimizer:
        return optimizer_for(self.optimizer, self.behavior_learning_rate, self.adam_epsilon, self.weight_decay)


def _behavior(learner: Learner) -> GaussianPolicy:
    return learner.extras["behavior"].parameters
