"""Linear TD on fixed features, and Proposition 3.2: co-adapted features stop it from converging."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dr3.theory.grams import grams_of
from dr3.theory.stability import Stability, stability


@dataclass(frozen=True)
class FeatureVerdict:
    """What Proposition 3.2 and the full spectrum say about a pair of feature matrices."""

    co_adaptation: float  # γ Σ φ·φ' / Σ φ·φ; the proposition speaks where it is >= 1
    trace: float  # trace K = Σ φ·φ - γ Σ φ·φ', the sum of all eigenvalues
    stability: Stability  # of the n x n spectrum: d x d has zeros wherever n < d (errata 15)

    @property
    def proposition_applies(self) -> bool:
        """The trace condition: sufficient for non-convergence, not necessary."""
        return self.co_adaptation >= 1

    @property
    def converges(self) -> bool:
        """Whether some step size makes linear TD converge: all nonzero eigenvalues in the right half plane."""
        return self.stability.condition_one


def judge_features(phi: Array, phi_next: Array, discounts: Array | float) -> FeatureVerdict:
    """Of φ(s, a) and φ(s', a'), both (n, d).

    Args:
        phi: Features φ(s, a), (n, d).
        phi_next: Features φ(s', a'), (n, d).
        discounts: γ(1 - d) of each row, (n,).
    """
    grams = grams_of(phi, phi_next, discounts)
    norms = float(jnp.trace(grams.same))
    pulls = float(jnp.sum(grams.discounts * grams.dot_products))
    return FeatureVerdict(pulls / norms if norms else 0.0, norms - pulls, stability(grams))


@functools.partial(jax.jit, static_argnames="steps")
def linear_td(
    phi: Array, phi_next: Array, rewards: Array, discounts: Array | float, *, eta: float, steps: int
) -> Array:
    """||g(w)|| along w ← w - η g(w), g(w) = Φᵀ((Φ - γΦ')w - r), from w = 0: (steps + 1,), the start included.

    Args:
        phi: Features φ(s, a), (n, d).
        phi_next: Features φ(s', a'), (n, d).
        rewards: (n,).
        discounts: γ(1 - d) of each row, (n,).
        eta: η, the step size.
        steps: How many steps.
    """
    advantage = _advantage(phi, phi_next, discounts)

    def pseudo_gradient(w: Array) -> Array:
        return phi.T @ (advantage @ w - rewards)

    def step(w: Array, _: None) -> tuple[Array, Array]:
        direction = pseudo_gradient(w)
        return w - eta * direction, jnp.linalg.norm(direction)

    last, norms = lax.scan(step, jnp.zeros(phi.shape[1], phi.dtype), None, length=steps)
    return jnp.append(norms, jnp.linalg.norm(pseudo_gradient(last)))


def linear_td_far(
    phi: Array, phi_next: Array, rewards: Array, discounts: Array | float, *, eta: float, doublings: int
) -> Array:
    """The same norms after 1, 2, 4, …, 2^doublings steps: (doublings + 1,). Real features are slow: 2⁴⁰ steps decide.

    g_{k+1} = (I - ηG) g_k with G = Φᵀ(Φ - γΦ') stays in Range(Φᵀ), so G is first written in a basis of it: over so many
    steps rounding in its null space would otherwise grow to any size. Once a number overflows, the rest are infinite.

    Args:
        phi: Features φ(s, a), (n, d).
        phi_next: Features φ(s', a'), (n, d).
        rewards: (n,).
        discounts: γ(1 - d) of each row, (n,).
        eta: η, the step size.
        doublings: How often the number of steps is doubled.
    """
    _, singular_values, right = jnp.linalg.svd(phi, full_matrices=False)
    basis = right[np.asarray(singular_values > 1e-10 * singular_values[0])].T  # (d, rank)
    E = eta * (phi @ basis).T @ (_advantage(phi, phi_next, discounts) @ basis)
    norms = _norms_by_squaring(E, -(phi @ basis).T @ rewards, doublings)
    return jnp.where(jnp.isfinite(norms), norms, jnp.inf)


@functools.partial(jax.jit, static_argnames="doublings")
def _norms_by_squaring(E: Array, start: Array, doublings: int) -> Array:
    # (I - E)^(2^k) is carried as I - E_k with E ← 2E - E²: small eigenvalues keep their digits.
    def square(E: Array, _: None) -> tuple[Array, Array]:
        return 2 * E - E @ E, jnp.linalg.norm(start - E @ start)

    return lax.scan(square, E, None, length=doublings + 1)[1]


def outcome(norms: Array) -> str:
    """ "converges" or "diverges" where a trajectory of norms shows it plainly, else "undecided".

    Args:
        norms: Along the trajectory, (T,).
    """
    start, end = float(norms[0]), float(norms[-1])
    if not np.isfinite(end) or end > 1e3 * start:
        return "diverges"
    return "converges" if end < 1e-3 * start else "undecided"


def _advantage(phi: Array, phi_next: Array, discounts: Array | float) -> Array:
    return phi - jnp.broadcast_to(jnp.asarray(discounts, phi.dtype), phi.shape[:1])[:, None] * phi_next
