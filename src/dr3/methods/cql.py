"""Conservative Q-learning with discrete actions (Kumar et al., 2020; appendix E.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.hyperparameters import hyperparameters, within
from dr3.methods.allowed import allowed_only
from dr3.methods.base import Info
from dr3.methods.discrete import Learner, chosen
from dr3.methods.dqn import DQN
from dr3.networks import Critic


@hyperparameters
@dataclass(frozen=True)
class CQL(DQN):
    """Q-learning that keeps unlogged actions low: loss = TD + α E[log Σ_a exp Q(s, a) - Q(s, a_logged)].

    The base is DQN with the Huber error, which carries the ½ of the paper's formula. With `quantiles` it is QR-DQN, as
    in CQL's own release, whose α is another (4 and 1 for 1 % and 10 % of the data); the penalty is on mean values.

    For continuous actions it is ContinuousCQL, which `dr3 train cql` takes where --data holds some; its flags are
    listed by `dr3 train continuous-cql --help`.
    """

    name: ClassVar[str] = "cql"

    alpha: float = 0.1
    """The weight of the conservative term; on Atari 1 for 1 % of the data, 0.1 for more (captions of appendix F)."""

    quantiles: int = 0  # as in DQN, but recorded always, as it was before DQN had it
    """Quantiles of each return, 200 in CQL's release; 0 is the plain DQN base."""

    error: Literal["mse", "huber"] = "huber"

    def check(self) -> None:
        super().check()
        within("alpha", self.alpha, 0)

    def loss(self, critic: Critic, learner: Learner, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        td, (backup, _) = super().loss(critic, learner, batch, key)
        values = critic.values(backup.phi)
        everything = jax.nn.logsumexp(allowed_only(values, batch.masks), axis=-1)
        gap = jnp.mean(everything - chosen(values, batch.actions))
        return td + self.alpha * gap, (backup, {"losses/td": td, "losses/cql": gap})
