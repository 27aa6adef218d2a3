"""Linear TD on fixed features, and Proposition 3.2: co-adapted features stop it from converging."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Of φ(s, a) and φ(s', a'), both (n, d)."""
    grams = grams_of(phi, phi_next, discounts)
    norms = float(jnp.trace(grams.same))
    pulls = float(jnp.sum(grams.discounts * grams.dot_products))
    return FeatureVerdict(pulls / norms, norms - pulls, stability(grams))


def linear_td(
    phi: Array, phi_next: Array, rewards: Array, discounts: Array | float, *, eta: float, steps: int, every: int = 1
) -> Array:
    """||TD error|| along w ← w - η Φᵀ((Φ - γΦ')w - r) from w = 0: (steps // every + 1,), the start included.

    In the space of samples e ← (I - ηK) e, so the error goes to 0 for every reward iff I - ηK contracts.
    """
    advantage = phi - jnp.broadcast_to(jnp.asarray(discounts), phi.shape[:1])[:, None] * phi_next

    def error(w: Array) -> Array:
        return advantage @ w - rewards

    def advance(w: Array, _: None) -> tuple[Array, Array]:
        w = lax.fori_loop(0, every, lambda _, at: at - eta * phi.T @ error(at), w)
        return w, jnp.linalg.norm(error(w))

    start = jnp.zeros(phi.shape[1], phi.dtype)
    _, norms = lax.scan(advance, start, None, length=steps // every)
    return jnp.concatenate([jnp.linalg.norm(rewards)[None], norms])


def outcome(errors: Array) -> str:
    """"converges" or "diverges" where the trajectory shows it plainly, else "undecided"."""
    start, end = float(errors[0]), float(errors[-1])
    if not np.isfinite(end) or end > 1e3 * start:
        return "diverges"
    return "converges" if end < 1e-3 * start else "undecided"
