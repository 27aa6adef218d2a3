"""The tie between (s, a) and (s', a') that every bootstrapped method makes, and that the paper is about."""

from __future__ import annotations

from typing import NamedTuple

from jax import Array


class Backup(NamedTuple):
    """Both sides of a batch of Bellman backups, as the *online* critic sees them.

    A method makes it; regularizers, instruments and the theory are functions of it. Features are the input of the
    last linear layer: phi(s) where a discrete head has one output per action, phi(s, a) for a continuous critic. An
    ensemble of critics puts its own axis first: (critics, n, d), and nothing is averaged over it before a product.
    """

    phi: Array  # (…, n, d) features at (s, a)
    phi_next: Array  # (…, n, d) features at (s', a'), gradients not stopped
    values: Array  # (…, n) Q(s, a)
    next_values: Array  # (n,) what the target takes for the value of s', before discounting
    targets: Array  # (n,) what Q(s, a) is pulled towards
    bootstraps: Array  # (n,) 1 where s' really enters the target, 0 at terminals
    discounts: Array  # (n,) what a unit of value at s' counts in the target: γ at most, 0 where it does not enter
    actions: Array  # (n, …) a
    next_actions: Array  # (n, …) the backup's own a'; the likeliest one where it takes an expectation
    same_output: Array  # (n,) probability that a' is read from the last-layer row that a is read from
