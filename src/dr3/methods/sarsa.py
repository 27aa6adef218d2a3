"""Offline SARSA: the behaviour policy's value, backed up from logged actions only (section 3.1, appendix A.6.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from dr3.data.batch import Batch
from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.methods.discrete import Bootstrap, BootstrappedMethod, chosen


@hyperparameters
@dataclass(frozen=True)
class SARSA(BootstrappedMethod):
    """Offline SARSA: targets r + γ Q_target(s', a') with the a' taken next, so that (s', a') is itself in the data."""

    name: ClassVar[str] = "sarsa"

    def prepare(self, data: Transitions) -> Transitions:
        """Only rows whose a' was logged, or needs none because the environment ended."""
        usable = data.terminals | data.next_action_known
        if not usable.any():
            raise UserError(f"sarsa needs the action taken after each row, and {data.name} holds none.")
        return super().prepare(data.rows(usable.nonzero()[0]))

    def bootstrap(self, online: Array, target: Array, batch: Batch) -> Bootstrap:
        same = (batch.next_actions == batch.actions).astype(jnp.float32)
        return Bootstrap(chosen(target, batch.next_actions), batch.next_actions, same)
