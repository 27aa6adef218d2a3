"""Q-learning with a target network: fitted Q-iteration on gridworlds, DQN on Atari (section 2, appendix A.6.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.return_bounds import return_bounds
from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.hyperparameters import ADDED_LATER, hyperparameters, within
from dr3.methods.allowed import greedy
from dr3.methods.base import Info
from dr3.methods.discrete import Bootstrap, BootstrappedMethod, Learner, chosen
from dr3.methods.hl_gauss import histogram_td
from dr3.methods.quantiles import quantile_td
from dr3.networks import Critic, HistogramCritic, QuantileCritic, Trunk


@hyperparameters
@dataclass(frozen=True)
class DQN(BootstrappedMethod):
    """Q-learning: targets r + γ max_a' Q_target(s', a')."""

    name: ClassVar[str] = "dqn"

    double: bool = False
    """Double Q-learning: the online critic picks a', the target network values it."""

    quantiles: int = field(default=0, metadata=ADDED_LATER)
    """Quantiles of each return (QR-DQN), 200 in its paper; 0 regresses on one value."""

    hl_gauss: int = field(default=0, metadata=ADDED_LATER)
    """Bins of a histogram of the value, learned by cross-entropy (HL-Gauss), 101 for example; needs a support."""

    support: tuple[float, ...] = field(default=(), metadata=ADDED_LATER)
    """The lowest and the highest value that the histogram knows; what is beyond counts as that."""

    def check(self) -> None:
        super().check()
        within("quantiles", self.quantiles, 0)
        within("hl_gauss", self.hl_gauss, 0)
        if self.quantiles and self.hl_gauss:
            raise UserError("quantiles and hl_gauss are two losses: choose one.")
        if not isinstance(self.support, tuple):
            raise UserError(f"support is the lowest and the highest value, not {self.support}.")
        if self.support and not self.hl_gauss:
            raise UserError("support is of the histogram: give hl_gauss, the number of its bins, too.")
        two = len(self.support) == 2 and all(map(math.isfinite, self.support)) and self.support[0] < self.support[1]
        if self.support and not two:
            raise UserError(f"support is the lowest and the highest value, not {self.support}.")

    def prepare(self, data: Transitions) -> Transitions:
        data = super().prepare(data)
        if self.hl_gauss and not self.support:  # in the units that it learns in
            low, high = return_bounds(data.rewards, self.discount, ends=bool(data.terminals.any()))
            raise UserError(
                f"hl_gauss needs a support, the lowest and the highest value; the rewards of {data.name} allow "
                f"{low:g} to {high:g}: --support {low:g} {high:g}."
            )
        return data

    def fresh_critic(self, trunk: Trunk, actions: int, key: Array) -> Critic:
        if self.quantiles:
            return QuantileCritic.create(trunk, actions, self.quantiles, key=key)
        if self.hl_gauss:
            return HistogramCritic.create(trunk, actions, self.hl_gauss, self.support, key=key)
        return super().fresh_critic(trunk, actions, key)

    def loss(self, critic: Critic, learner: Learner, batch: Batch, key: Array) -> tuple[Array, tuple[Backup, Info]]:
        td, (backup, info) = super().loss(critic, learner, batch, key)
        if self.quantiles:
            assert isinstance(critic, QuantileCritic)
            assert isinstance(learner.target, QuantileCritic)
            td = quantile_td(critic, learner.target, backup, batch)
        elif self.hl_gauss:
            assert isinstance(critic, HistogramCritic)
            td = histogram_td(critic, backup)
        return td, (backup, {**info, "losses/td": td})

    def bootstrap(self, online: Array, target: Array, batch: Batch) -> Bootstrap:
        actions = greedy(online if self.double else target, batch.next_masks)
        return Bootstrap(chosen(target, actions), actions, (actions == batch.actions).astype(jnp.float32))
