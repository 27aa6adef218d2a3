"""The discrete Lyapunov equation of Theorem 3.1, solved in the space of samples (n x n) instead of parameters (d x d).

With J (n, d) the Jacobian of Q at (s, a), J' at (s', a') and K = (J - γJ')Jᵀ, label noise has Σ* = JᵀSJ, where

    S = (I - ηK) S (I - ηK)ᵀ + η² C        (C = I for label noise of unit variance; any M = JᵀCJ in general)

because (I - ηG)Jᵀ = Jᵀ(I - ηK). Everything here is pure JAX, jits, vmaps, and works in float32 and float64. Σ* is a
constant of the regularizer (the stop-gradient must cover it: docs/errata.md, 2), so no gradient flows through K.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax


class FixedPoint(NamedTuple):
    """S, and whether it means anything."""

    covariance: Array  # (n, n) S; where `contracts` is False, the finite sum over the first `steps` steps
    contracts: Array  # () bool: the spectral radius of I - ηK is proven to be below 1
    steps: Array  # () how many steps of the recursion S is the sum of (a power of two, in floating point)


@jax.jit
def lyapunov_steps(K: Array, eta: float | Array, steps: int | Array, *, noise: Array | None = None) -> Array:
    """S after `steps` steps of S ← (I - ηK) S (I - ηK)ᵀ + η²C from S = 0 (the paper's label-noise run takes 20).

    It is written with ηK rather than with I - ηK: at η = 6.25e-5 the latter would lose K's digits in float32.
    """
    K = lax.stop_gradient(K)
    shrink = eta * K
    injected = eta**2 * _noise_or_identity(K, noise)

    def step(_: int, S: Array) -> Array:
        left = S - shrink @ S
        return left - left @ shrink.T + injected

    return lax.fori_loop(0, steps, step, jnp.zeros_like(K))


MOST_DOUBLINGS = 48  # 2⁴⁸ steps: what has not settled by then does not contract in double precision either


@jax.jit
def lyapunov_fixed_point(
    K: Array,
    eta: float | Array,
    *,
    noise: Array | None = None,
    support: Array | None = None,
) -> FixedPoint:
    """The limit of `lyapunov_steps`, in a logarithmic number of products: S_2N = S_N + Aᴺ S_N (Aᴺ)ᵀ with A = I - ηK.

    Contraction is decided by the doubling itself: ρ(A)ᴺ <= ||Aᴺ||, so a norm below 1 proves ρ(A) < 1. If the norm
    explodes or `MOST_DOUBLINGS` pass first, `contracts` is False: use `lyapunov_steps` there.

    support: (n, n) orthogonal projector onto Range(J), from `support_of(JJᵀ)`. Needed where samples repeat: then K has
    zero eigenvalues along which S grows for ever although JᵀSJ does not see it.
    """
    K = lax.stop_gradient(K)
    identity = jnp.eye(K.shape[-1], dtype=K.dtype)
    # Aᴺ is carried as E = I - Aᴺ, which doubles by E ← 2E - E²: the small eigenvalues of ηK keep their digits.
    E = eta * K
    S = eta**2 * _noise_or_identity(K, noise)
    if support is not None:
        support = lax.stop_gradient(support)
        E = identity - support + support @ E @ support
        S = support @ S @ support
    epsilon = jnp.finfo(K.dtype).eps

    def unsettled(state: tuple[Array, Array, Array, Array]) -> Array:
        _, _, doublings, norm = state
        return (norm > jnp.sqrt(epsilon)) & (norm < 1 / epsilon) & (doublings < MOST_DOUBLINGS)

    def double(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        E, S, doublings, _ = state
        A = identity - E
        E = 2 * E - E @ E
        return E, S + A @ S @ A.T, doublings + 1, jnp.linalg.norm(identity - E)

    state = (E, S, jnp.zeros((), jnp.int32), jnp.linalg.norm(identity - E))
    _, S, doublings, norm = lax.while_loop(unsettled, double, state)
    return FixedPoint(S, norm < 1, 2.0 ** doublings.astype(K.dtype))


@jax.jit
def support_of(gram: Array, *, tolerance: float | Array | None = None) -> Array:
    """Orthogonal projector (n, n) onto Range(JJᵀ) = Range(J); the identity where no two samples share a gradient.

    tolerance: eigenvalues below `tolerance` times the largest count as zero; n·eps unless given.
    """
    gram = lax.stop_gradient(gram)
    eigenvalues, vectors = jnp.linalg.eigh(gram)
    if tolerance is None:
        tolerance = gram.shape[-1] * float(jnp.finfo(gram.dtype).eps)
    kept = vectors * (eigenvalues > tolerance * eigenvalues[-1])
    return kept @ kept.T


def _noise_or_identity(K: Array, noise: Array | None) -> Array:
    if noise is None:
        return jnp.eye(K.shape[-1], dtype=K.dtype)
    return lax.stop_gradient(noise).astype(K.dtype)
