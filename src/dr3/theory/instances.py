"""Random problems to try the theory on: a two-layer tanh network and a few Bellman updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from dr3.instruments import Grams
from dr3.theory.derivatives import jacobians
from dr3.theory.grams import grams_of
from dr3.theory.problem import TDProblem
from dr3.theory.stability import Stability, stability

# Which parts of the key of an instance's seed draw its chains. The first ones drew the instance: the parts that a split
# makes are those that fold_in gives for 0, 1, and so on.
OF_STARTS, OF_NOISE = 1000, 1001


@dataclass(frozen=True)
class Instance:
    """A problem with a θ that is an exact fixed point of it (every TD error is 0)."""

    seed: int
    problem: TDProblem
    theta: Array  # (d,)
    J: Array  # (n, d)
    J_next: Array  # (n, d)
    grams: Grams
    stability: Stability


def tanh_network(theta: Array, inputs: Array) -> Array:
    """Q(x) = Σ_h a_h tanh(w_h · x), the smallest network whose features can move; θ holds all w_h, then all a_h."""
    hidden = theta.shape[0] // (inputs.shape[1] + 1)
    weights = theta[:-hidden].reshape(inputs.shape[1], hidden)
    return jnp.tanh(inputs @ weights) @ theta[-hidden:]


def fixed_point(seed: int, theta: Array, inputs: Array, next_inputs: Array, gamma: float) -> Instance:
    """The tanh network's problem with the rewards that make θ a fixed point."""
    problem, J, J_next, grams = _settle(theta, inputs, next_inputs, gamma)
    return Instance(seed, problem, theta, J, J_next, grams, stability(grams))


@jax.jit
def _settle(theta: Array, inputs: Array, next_inputs: Array, gamma: float) -> tuple[TDProblem, Array, Array, Grams]:
    discounts = jnp.full(inputs.shape[0], gamma)
    problem = TDProblem(tanh_network, inputs, next_inputs, jnp.zeros_like(discounts), discounts).settled_at(theta)
    J, J_next = jacobians(problem, theta)
    return problem, J, J_next, grams_of(J, J_next, discounts)


def random_instance(seed: int, *, n: int = 2, inputs: int = 3, hidden: int = 3, gamma: float = 0.9) -> Instance:
    """Standard normal weights and inputs, d = hidden · (inputs + 1); no (s', a') appears on a left-hand side."""
    keys = jax.random.split(jax.random.key(seed), 3)
    theta = jax.random.normal(keys[0], (hidden * (inputs + 1),))
    x, x_next = (jax.random.normal(key, (n, inputs)) for key in keys[1:])
    return fixed_point(seed, theta, x, x_next, gamma)


def random_pair(
    seed: int, *, n: int = 3, state: int = 3, action: int = 2, hidden: int = 4, gamma: float = 0.9
) -> tuple[Instance, Instance]:
    """The same network and the same n transitions around a loop, backed up in sample and out of sample.

    s'_i = s_{i+1} in both. In sample a'_i is the logged a_{i+1} (offline SARSA: the pairs (s', a') are a permutation of
    the (s, a)); out of sample it is a fresh draw, as when a policy chooses it.
    """
    keys = jax.random.split(jax.random.key(seed), 4)
    theta = jax.random.normal(keys[0], (hidden * (state + action + 1),))
    states, actions = jax.random.normal(keys[1], (n, state)), jax.random.normal(keys[2], (n, action))
    unseen = jax.random.normal(keys[3], (n, action))
    x = jnp.concatenate([states, actions], axis=1)
    logged = jnp.roll(x, -1, axis=0)
    chosen = logged.at[:, state:].set(unseen)
    return fixed_point(seed, theta, x, logged, gamma), fixed_point(seed, theta, x, chosen, gamma)


def stable(draw: Callable, count: int, *, slowest: float = 0.6, **sizes) -> Iterator:
    """The first `count` draws that the theorem speaks about, seeds 0, 1, …: every nonzero Re λ(G) above `slowest`.

    draw: `random_instance` or `random_pair` (both of the pair must qualify). The theorem's own bound is 0; the margin
    makes "many relaxation times" a number of steps that can be simulated.
    """
    seed, found = 0, 0
    while found < count:
        drawn = draw(seed, **sizes)
        members = drawn if isinstance(drawn, tuple) else (drawn,)
        if all(member.stability.smallest_real_part > slowest for member in members):
            found += 1
            yield drawn
        seed += 1
