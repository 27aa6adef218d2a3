"""How many directions the features use."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


def srank(phi: ArrayLike, *, delta: float = 0.01) -> float:
    """Smallest k whose k largest singular values hold at least 1 - delta of the sum of all (Kumar et al., 2021).

    `phi` is (n, d): one row per state-action pair. The result cannot exceed min(n, d), so report n beside it. Singular
    values are not squared here; the "99 % of variance" rank squares them and is a different number. Features that are
    all zero have rank 0, features that are not all finite have none: NaN.
    """
    phi = np.asarray(phi, np.float64)
    if not np.isfinite(phi).all():
        return math.nan
    # The roots of the smaller Gram matrix's eigenvalues: 5 times faster than an SVD. What squaring loses in float64,
    # singular values below about 1e-7 of the largest, is far under delta; there the eigenvalues are only rounding.
    gram = phi @ phi.T if len(phi) < phi.shape[1] else phi.T @ phi
    eigenvalues = np.linalg.eigvalsh(gram)[::-1]
    singular = np.sqrt(np.where(eigenvalues > max(phi.shape) * np.finfo(float).eps * eigenvalues[0], eigenvalues, 0))
    if singular[0] == 0:
        return 0
    held = np.cumsum(singular) / singular.sum()
    # The last entry of a cumulative sum may miss 1 by rounding; it is 1 by definition.
    held[-1] = 1.0
    # A share that is 1 - delta by construction must not fall below it by rounding.
    return int(np.searchsorted(held, 1 - delta - 1e-9, side="left")) + 1
