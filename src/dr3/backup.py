"""The tie between (s, a) and (s', a') that every bootstrapped method makes, and that the paper is about."""

from __future__ import annotations

from typing import NamedTuple

from jax import Array
from jaxtyping import Float, Shaped


class Backup(NamedTuple):
    """Both sides of a batch of Bellman backups, as the *online* critic sees them.

    A method makes it; regularizers, instruments, the doctor and the theory are functions of it. Features are the input
    of the last linear layer: phi(s) where a discrete head has one output per action, phi(s, a) for a continuous critic.
    An ensemble of critics puts its own axis first: (critics, n, d), and nothing is averaged over it before a product.
    """

    phi: Float[Array, "*critics n d"]  # features at (s, a)
    phi_next: Float[Array, "*critics n d"]  # features at (s', a'), gradients not stopped
    values: Float[Array, "*critics n"]  # Q(s, a)
    next_values: Float[Array, " n"]  # what the target takes for the value of s', before discounting
    targets: Float[Array, " n"]  # what Q(s, a) is pulled towards
    bootstraps: Float[Array, " n"]  # 1 where s' really enters the target, 0 at terminals
    discounts: Float[Array, " n"]  # what a unit of value at s' counts in the target: γ at most, 0 if it does not enter
    actions: Shaped[Array, " n *action"]  # a: integers (n,), or vectors (n, size)
    next_actions: Shaped[Array, " n *action"]  # the backup's own a'; the likeliest one where it takes an expectation
    same_output: Float[Array, " n"]  # probability that a' is read from the last-layer row that a is read from
    rewards: Float[Array, " n"] | None = None  # r, where it is known
    readout: Float[Array, "*critics n d"] | None = None  # ∂Q(s, a)/∂phi: the last layer's weights that Q is read with

    @property
    def rows_per_action(self) -> bool:
        """Whether the last layer has a row for each action; else actions are inputs, and all share one output."""
        return self.actions.ndim == 1
