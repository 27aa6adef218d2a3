"""Noisy TD (Eq. 3) and its reference Ornstein-Uhlenbeck process (appendix C.1), thousands of chains at once."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import Array, lax

from dr3.theory.derivatives import pseudo_gradient
from dr3.theory.problem import TDProblem


@functools.partial(jax.jit, static_argnames=("records", "steps_per_record"))
def noisy_td(
    problem: TDProblem, starts: Array, factor: Array, key: Array, *, eta: float, records: int, steps_per_record: int
) -> Array:
    """θ_{k+1} = θ_k - η g(θ_k) + η ε_k with ε_k ~ N(0, FFᵀ) (Eq. 3), from `starts` (chains, d).

    factor: F (d, m); the noise does not move with θ, as in the theorem. Returns all chains after every
    `steps_per_record` steps: (records, chains, d). Chains come in pairs with opposite noise (row i with row
    i + chains / 2): each is still an exact sample of Eq. 3, and what is odd in the noise cancels from their mean.

    Args:
        problem: The TD problem: a network and a batch.
        starts: Where the chains begin, (chains, d).
        factor: F (d, m): the noise is N(0, FFᵀ).
        key: Draws the noise.
        eta: η, the step size.
        records: How many moments of each chain to keep.
        steps_per_record: Steps between two of them.
    """

    def advance(thetas: Array, noise: Array) -> Array:
        return thetas - eta * jax.vmap(lambda theta: pseudo_gradient(problem, theta))(thetas) + eta * noise

    return _run(advance, starts, factor, key, records, steps_per_record)


@functools.partial(jax.jit, static_argnames=("records", "steps_per_record"))
def ornstein_uhlenbeck(
    G: Array, starts: Array, factor: Array, key: Array, *, eta: float, records: int, steps_per_record: int
) -> Array:
    """ζ_{k+1} = (I - ηG) ζ_k + η ε_k, recorded as `noisy_td` is; with the same key it sees the same noise.

    Args:
        G: The pseudo-Hessian, (d, d).
        starts: Where the chains begin, (chains, d).
        factor: F (d, m): the noise is N(0, FFᵀ).
        key: Draws the noise.
        eta: η, the step size.
        records: How many moments of each chain to keep.
        steps_per_record: Steps between two of them.
    """

    def advance(zetas: Array, noise: Array) -> Array:
        return zetas - eta * zetas @ G.T + eta * noise

    return _run(advance, starts, factor, key, records, steps_per_record)


def paired_draws(key: Array, chains: int, size: int) -> Array:
    """Standard normal rows (chains, size), the second half the negative of the first.

    Args:
        key: Draws the noise.
        chains: How many rows; an even number.
        size: How many numbers in a row.
    """
    draws = jax.random.normal(key, ((chains + 1) // 2, size))
    return jnp.concatenate([draws, -draws])[:chains]


def _run(advance, starts: Array, factor: Array, key: Array, records: int, steps_per_record: int) -> Array:
    def step(states: Array, index: Array) -> tuple[Array, None]:
        draws = paired_draws(jax.random.fold_in(key, index), starts.shape[0], factor.shape[1])
        return advance(states, draws @ factor.T), None

    def record(states: Array, first: Array) -> tuple[Array, Array]:
        states, _ = lax.scan(step, states, first + jnp.arange(steps_per_record))
        return states, states

    return lax.scan(record, starts, jnp.arange(records) * steps_per_record)[1]
