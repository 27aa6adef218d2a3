"""TD-learning: the behaviour policy's value, backed up in full expectation over its actions (section 3.1, A.6.2)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

import jax.numpy as jnp
from jax import Array

from dr3.data.batch import Batch
from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.methods.allowed import greedy, renormalised
from dr3.methods.cloning import clone_behavior
from dr3.methods.discrete import Bootstrap, BootstrappedMethod, chosen


@hyperparameters
@dataclass(frozen=True)
class TD(BootstrappedMethod):
    """TD-learning: targets r + γ Σ_a' π_β(a'|s') Q_target(s', a').

    Same quantity as SARSA's in expectation, but a' may be out of sample: never logged, though likely under π_β. That is
    the difference the paper traces co-adaptation to.
    """

    name: ClassVar[str] = "td"

    behavior: Literal["auto", "logged", "cloned"] = "auto"
    """Where π_β comes from: probabilities in the data, or a policy cloned from its actions; auto prefers the former."""

    def prepare(self, data: Transitions) -> Transitions:
        data = super().prepare(data)
        if self.behavior == "logged" and data.next_behavior is None:
            raise UserError(f"{data.name} holds no next_behavior probabilities; train td with --behavior cloned.")
        if self.behavior == "cloned" or data.next_behavior is None:
            data = dataclasses.replace(data, next_behavior=clone_behavior(data, standardise=self.standardise))
        return data

    def bootstrap(self, online: Array, target: Array, batch: Batch) -> Bootstrap:
        return expectation(target, batch)


def expectation(target: Array, batch: Batch) -> Bootstrap:
    """Σ_a' π(a'|s') Q_target(s', a') with the batch's probabilities of allowed actions; a' is the likeliest one."""
    assert batch.next_behavior is not None
    policy = renormalised(batch.next_behavior, batch.next_masks)
    return Bootstrap(jnp.sum(policy * target, axis=-1), greedy(policy, batch.next_masks), chosen(policy, batch.actions))
