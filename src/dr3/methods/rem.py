"""REM: random ensemble mixtures (Agarwal et al., 2020; appendix E.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax
from jax import Array

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters, within
from dr3.methods.base import Info
from dr3.methods.discrete import Learner
from dr3.methods.dqn import DQN
from dr3.networks import Critic, MultiHeadCritic, Trunk


@hyperparameters
@dataclass(frozen=True)
class REM(DQN):
    """Q-learning on a random mixture of heads: targets r + γ max_a' Σ_k α_k Q_k,target(s', a').

    K heads on one trunk. Every update draws one α, and Σ_k α_k Q_k is trained towards the same mixture of the target's
    heads. The heads are linear, so the weights are mixed before they meet the features: an update costs what DQN's
    does, and mixing. Acting and values are the plain mean of the heads, which is the mixture's expectation.
    """

    name: ClassVar[str] = "rem"

    heads: int = 200
    """Linear heads on one trunk, K in the paper."""

    error: Literal["mse", "huber"] = "huber"

    def check(self) -> None:
        super().check()
        within("heads", self.heads, 1)
        if self.quantiles or self.hl_gauss:
            raise UserError("The heads of rem are of single values: quantiles and hl_gauss are for dqn and cql.")

    def fresh_critic(self, trunk: Trunk, actions: int, key: Array) -> MultiHeadCritic:
        return MultiHeadCritic.create(trunk, actions, self.heads, key=key)

    def loss(self, critic: Critic, learner: Learner, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        assert isinstance(critic, MultiHeadCritic)
        assert isinstance(learner.target, MultiHeadCritic)
        alpha = draw_mixture(key, self.heads)
        mixed = learner._replace(target=learner.target.mixed(alpha))
        td, (backup, info) = super().loss(critic.mixed(alpha), mixed, batch, key)
        # The Backup's values are those of the heads' mean: it acts, and it does not change with α. The loss above is
        # the mixture's, and so are the next actions, which this update bootstraps from. What nobody uses of this is not
        # computed.
        of_mean = self.backup(critic.mean(), learner.target.mean(), backup.phi, backup.phi_next, batch)
        return td, (of_mean._replace(next_actions=backup.next_actions, same_output=backup.same_output), info)


def draw_mixture(key: Array, heads: int) -> Array:
    """α: (K,) positive, of sum 1, shared by the batch, the online and the target network.

    As in the public code: K uniform numbers over their sum. That is not uniform on the simplex, as the paper's P_Δ may
    be read: for K = 200 every α_k is below 2/K or close to it, so a mixture stays close to the mean.
    """
    drawn = jax.random.uniform(key, (heads,))
    return drawn / drawn.sum()
