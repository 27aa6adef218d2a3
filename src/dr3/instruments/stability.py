"""Whether TD-learning stays where it is: Proposition 3.2's ratio and the stability spectrum.

With J (n, d) the gradients of Q at (s, a), J' those at (s', a') and G = Jᵀ(J - γJ') the matrix of Theorem 3.1, the
nonzero eigenvalues of G are those of the n x n matrix K = (J - γJ')Jᵀ. For the last layer the gradients are the
features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


def co_adaptation_ratio(phi: ArrayLike, phi_next: ArrayLike, discounts: ArrayLike) -> float:
    """γ Σ φ(s, a)·φ(s', a') / Σ φ(s, a)·φ(s, a) (Proposition 3.2).

    At 1 and above linear TD on these features does not converge; that is sufficient, not necessary. `discounts` is
    γ(1 - d), for each row or one for all. Features that are all zero have the ratio 0.

    Args:
        phi: Features φ(s, a), (n, d).
        phi_next: Features φ(s', a'), (n, d).
        discounts: γ(1 - d) of each row, (n,).
    """
    phi, phi_next = np.asarray(phi, np.float64), np.asarray(phi_next, np.float64)
    norms = float((phi * phi).sum())
    pulls = float((np.broadcast_to(discounts, phi.shape[:1]) * (phi * phi_next).sum(-1)).sum())
    return pulls / norms if norms else 0.0


class Grams(NamedTuple):
    """The n x n matrices that everything about G reduces to: numpy's for instruments, JAX's for the theory."""

    same: Any  # (n, n) JJᵀ
    cross: Any  # (n, n) J'Jᵀ: row i is the gradient at (s'_i, a'_i) against that at every (s_j, a_j)
    discounts: Any  # (n,) γ(1 - d)

    @property
    def K(self) -> Any:
        """K = (J - γJ')Jᵀ: (n, n). Its nonzero eigenvalues are those of G at a fixed point."""
        return self.same - self.discounts[:, None] * self.cross

    @property
    def dot_products(self) -> Any:
        """g_i · g'_i, the quantity that co-adapts: (n,)."""
        return self.cross.diagonal()


def last_layer_grams(
    phi: ArrayLike,
    phi_next: ArrayLike,
    discounts: ArrayLike,
    actions: ArrayLike | None = None,
    next_actions: ArrayLike | None = None,
) -> Grams:
    """Of the gradients with respect to the last layer's weights, which are the features. `discounts` is γ(1 - d), for
    each row or one for all.

    Where the layer has a row for each action, give both `actions` (n,): gradients of different rows are orthogonal.

    Args:
        phi: Features φ(s, a), (n, d).
        phi_next: Features φ(s', a'), (n, d).
        discounts: γ(1 - d) of each row, (n,), or one for all.
        actions: a, (n,), for a head with one output per action; None where all share one.
        next_actions: a', (n,), likewise.
    """
    phi, phi_next = np.asarray(phi, np.float64), np.asarray(phi_next, np.float64)
    same, cross = phi @ phi.T, phi_next @ phi.T
    if actions is not None:
        a, following = np.asarray(actions), np.asarray(next_actions)
        same, cross = same * (a[:, None] == a), cross * (following[:, None] == a)
    return Grams(same, cross, np.broadcast_to(discounts, len(phi)))


@dataclass(frozen=True)
class Stability:
    """What the nonzero spectrum of G, an n x n eigenvalue problem, says about a fixed point."""

    eigenvalues: NDArray[np.complex128]  # nonzero λ(G) = λ(K), by decreasing modulus
    smallest_real_part: float  # the distance from the unstable half-plane, negative inside it
    condition_one: bool  # Re λ > 0 for all of them (the zeros of overparameterisation are allowed)
    largest_step: float  # |1 - ηλ| < 1 for all λ iff 0 < η < this; 0 where condition (1) fails

    @property
    def margin(self) -> float:
        """The smallest real part over the largest modulus: a distance without units, at most 1."""
        return self.smallest_real_part / float(np.abs(self.eigenvalues[0])) if len(self.eigenvalues) else 0.0

    def contracts(self, eta: float) -> bool:
        """Whether I - ηG contracts on Range(G): condition (1) and η < min 2 Re λ / |λ|² (the paper's bound is off)."""
        return 0 < eta < self.largest_step

    def spectral_radius(self, eta: float) -> float:
        """max |1 - ηλ| over the nonzero λ."""
        return float(np.abs(1 - eta * self.eigenvalues).max(initial=0.0))


def stability(same: ArrayLike, K: ArrayLike, *, tolerance: float | None = None) -> Stability:
    """Of a fixed point (every TD error 0), for a network of any size. Elsewhere it describes the part of G without
    second derivatives.

    K is read on Range(J) alone, where its eigenvalues are G's nonzero ones; what repeated samples add are zeros.
    `tolerance`: directions of JJᵀ below it times the largest count as repeats; n·eps unless given.

    Args:
        same: The Gram matrix JJᵀ, (n, n).
        K: (J - γJ')Jᵀ, (n, n).
        tolerance: Directions of JJᵀ below it times the largest count as repeats; None is n·eps.
    """
    same, K = np.asarray(same), np.asarray(K)
    if same.dtype.kind != "f":
        same = same.astype(np.float64)
    if not (np.isfinite(same).all() and np.isfinite(K).all()):
        return Stability(np.full(1, np.nan, np.complex128), np.nan, False, 0.0)
    sizes, vectors = np.linalg.eigh(same)
    tolerance = len(same) * float(np.finfo(same.dtype).eps) if tolerance is None else tolerance
    basis = vectors[:, sizes > max(tolerance * sizes[-1], 0.0)]
    if basis.shape[1] == 0:
        return Stability(np.zeros(0, np.complex128), 0.0, True, np.inf)
    eigenvalues = np.linalg.eigvals(basis.T @ K @ basis).astype(np.complex128)
    eigenvalues = eigenvalues[np.argsort(-np.abs(eigenvalues))]
    smallest = float(eigenvalues.real.min())
    step = float((2 * eigenvalues.real / np.abs(eigenvalues) ** 2).min()) if smallest > 0 else 0.0
    return Stability(eigenvalues, smallest, smallest > 0, step)


def updates_until(smallest_real_part: float, step_size: float, rows: int, room: float) -> float:
    """After how many plain gradient steps an error has grown `room` times, by the most unstable eigenvalue of K.

    A step of size η on the mean of n squared TD errors takes the errors e to (I - 2η/n K) e, so along an eigenvalue of
    real part -μ they grow by 1 + 2ημ/n. This is the forecast of Yue et al. (2023); Adam takes larger steps.

    Args:
        smallest_real_part: Of K's eigenvalues.
        step_size: η.
        rows: n, over which K was taken.
        room: How many times an error may grow.

    Returns:
        Updates; infinite where the eigenvalue is stable.
    """
    if not smallest_real_part < 0 or not step_size > 0:
        return float("inf")
    return float(max(np.log(max(room, 1.0)), 0.0) / np.log1p(-2 * step_size * smallest_real_part / rows))
