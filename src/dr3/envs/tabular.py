"""Exact values in a world whose transition matrix is known.

`P` is (S, A, S), `r` is (S,) for a reward of the state that is left, or (S, A). A row of `P` may sum to less than 1:
the missing mass is the probability that the episode ends. Everything is computed in float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dr3.errors import UserError

Floats = NDArray[np.float64]

TIE = 1e-9  # values closer than this are equal: a linear solve tells exact ties apart by rounding alone


def policy_values(P: Floats, r: NDArray[np.floating], policy: NDArray[np.floating], discount: float) -> Floats:
    """Q^π (S, A), the solution of Q = r + γ P V with V(s) = Σ_a π(a|s) Q(s, a); `policy` is (S, A) probabilities.

    Args:
        P: Transition probabilities, (S, A, S).
        r: Rewards, (S,) or (S, A).
        policy: Probabilities of actions, (S, A).
        discount: γ.
    """
    _check_discount(discount)
    rewards = _per_action(P, r)
    under_policy = np.einsum("sa,sat->st", policy, P)
    values = np.linalg.solve(np.eye(len(P)) - discount * under_policy, (policy * rewards).sum(axis=1))
    return rewards + discount * P @ values


def optimal_values(P: Floats, r: NDArray[np.floating], discount: float) -> Floats:
    """Q* (S, A) by policy iteration.

    An action is changed only where another is better by more than `TIE`; without that, rounding between equally good
    actions could keep it going round for ever.

    Args:
        P: Transition probabilities, (S, A, S).
        r: Rewards, (S,) or (S, A).
        discount: γ.
    """
    states = np.arange(len(P))
    actions = np.zeros(len(P), np.int64)
    while True:
        values = policy_values(P, r, np.eye(P.shape[1])[actions], discount)
        better = values.max(axis=1) > values[states, actions] + TIE
        if not better.any():
            return values
        actions = np.where(better, values.argmax(axis=1), actions)


def greedy_policy(values: NDArray[np.floating]) -> Floats:
    """All probability on the best action, the first one on ties: (S, A).

    Args:
        values: Q(s, a), (S, A).
    """
    best = values >= values.max(axis=1, keepdims=True) - TIE
    return np.eye(values.shape[1])[best.argmax(axis=1)]


def expected_return(
    P: Floats,
    r: NDArray[np.floating],
    policy: NDArray[np.floating],
    start: int,
    horizon: int,
    *,
    discount: float = 1.0,
) -> float:
    """The expected return of `horizon` steps from the state `start`: Σ_t γ^t Σ_s p_t(s) r(s), p_t propagated exactly.

    Without a discount it is the mean of infinitely many evaluation episodes.

    Args:
        P: Transition probabilities, (S, A, S).
        r: Rewards, (S,) or (S, A).
        policy: Probabilities of actions, (S, A).
        start: The first state.
        horizon: How many steps.
        discount: γ.
    """
    under_policy = np.einsum("sa,sat->st", policy, P)
    rewards = (policy * _per_action(P, r)).sum(axis=1)
    here = np.zeros(len(P))
    here[start] = 1.0
    total = 0.0
    for step in range(horizon):
        total += discount**step * float(here @ rewards)
        here = here @ under_policy
    return total


def _per_action(P: Floats, r: NDArray[np.floating]) -> Floats:
    rewards = np.asarray(r, np.float64)
    return np.broadcast_to(rewards[:, None] if rewards.ndim == 1 else rewards, P.shape[:2])


def _check_discount(discount: float) -> None:
    if not 0 <= discount < 1:
        raise UserError(f"The discount of an endless task must be at least 0 and below 1, not {discount}.")
