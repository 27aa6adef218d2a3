"""Q-learning with a target network: fitted Q-iteration on gridworlds, DQN on Atari (section 2, appendix A.6.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from dr3.data.batch import Batch
from dr3.hyperparameters import hyperparameters
from dr3.methods.discrete import Bootstrap, BootstrappedMethod, chosen


@hyperparameters
@dataclass(frozen=True)
class DQN(BootstrappedMethod):
    """Q-learning: targets r + γ max_a' Q_target(s', a')."""

    name: ClassVar[str] = "dqn"

    double: bool = False
    """Double Q-learning: the online critic picks a', the target network values it."""

    def bootstrap(self, online: Array, target: Array, batch: Batch) -> Bootstrap:
        actions = jnp.argmax(online if self.double else target, axis=-1)
        return Bootstrap(chosen(target, actions), actions, (actions == batch.actions).astype(jnp.float32))
