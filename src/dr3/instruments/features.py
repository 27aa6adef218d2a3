"""What the features on the two sides of a backup have to do with each other.

Plain functions of feature matrices; numpy and JAX arrays both work, since only operators and methods are used. `phi`
and `phi_next` are (…, n, d) as in a `Backup`, `bootstraps` is its (n,) mask. Averages run over the pairs that a backup
really ties: terminal rows, where s' does not enter the target, are left out.
"""

from __future__ import annotations

from typing import Any


def dot_product(phi: Any, phi_next: Any, bootstraps: Any) -> Any:
    """Mean of phi(s, a) · phi(s', a'): the paper's measure of co-adaptation (section 3.1).

    Args:
        phi: Features φ(s, a), (…, n, d).
        phi_next: Features φ(s', a'), (…, n, d).
        bootstraps: 1 where s' enters the target, 0 at terminals, (n,).
    """
    return _mean_over_pairs((phi * phi_next).sum(-1), bootstraps)


def cosine(phi: Any, phi_next: Any, bootstraps: Any, *, epsilon: float = 1e-12) -> Any:
    """Mean of the cosine between phi(s, a) and phi(s', a') (appendix A.6.3).

    `epsilon` bounds the norms from below: ReLU features can be all zero, and such a pair counts as orthogonal.

    Args:
        phi: Features φ(s, a), (…, n, d).
        phi_next: Features φ(s', a'), (…, n, d).
        bootstraps: 1 where s' enters the target, 0 at terminals, (n,).
        epsilon: The least that a norm counts as: ReLU features can be all zero.
    """
    norms = norm(phi).clip(epsilon) * norm(phi_next).clip(epsilon)
    return _mean_over_pairs((phi * phi_next).sum(-1) / norms, bootstraps)


def norm(phi: Any) -> Any:
    """Euclidean length of each feature vector: (…, n).

    Args:
        phi: Features, (…, n, d).
    """
    return (phi**2).sum(-1) ** 0.5


def _mean_over_pairs(quantity: Any, bootstraps: Any) -> Any:
    """Mean over the rows that bootstrap, then over an ensemble's axis if there is one; 0 where no row bootstraps."""
    return ((quantity * bootstraps).sum(-1) / bootstraps.sum().clip(1)).mean()
