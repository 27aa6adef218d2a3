"""How many directions the features use: six definitions in use, each under its own name.

Of one matrix they are six different numbers, and papers call several of them "the rank" or "srank". `phi` is (n, d), a
row for each state-action pair; no rank can exceed min(n, d), so report n beside it. Rows are not centred. Features that
are all zero have rank 0, features that are not all finite have none: NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FLOAT32 = float(np.finfo(np.float32).eps)  # what networks compute in, whatever the array holds


def srank(phi: ArrayLike, *, delta: float = 0.01) -> float:
    """Smallest k whose k largest singular values hold at least 1 - delta of the sum of all (Kumar et al., 2021).

    The paper's rank. Singular values are not squared here; `pca_rank` squares them and is a different number.

    Args:
        phi: Features φ(s, a), (n, d).
        delta: The share that may be left out.
    """
    return _of_spectrum(phi, lambda singular: _smallest_that_holds(singular, delta))


def pca_rank(phi: ArrayLike, *, delta: float = 0.01) -> float:
    """Smallest k whose k largest *squared* singular values hold at least 1 - delta of their sum: "99 % of variance".

    Args:
        phi: Features φ(s, a), (n, d).
        delta: The share that may be left out.
    """
    return _of_spectrum(phi, lambda singular: _smallest_that_holds(singular**2, delta))


def effective_rank(phi: ArrayLike) -> float:
    """exp of the entropy of the singular values divided by their sum (Roy and Vetterli, 2007); not a whole number.

    Args:
        phi: Features φ(s, a), (n, d).
    """

    def of(singular: NDArray[np.float64]) -> float:
        share = singular[singular > 0] / singular.sum()
        return math.exp(-float((share * np.log(share)).sum()))

    return _of_spectrum(phi, of)


def stable_rank(phi: ArrayLike) -> float:
    """‖Φ‖_F² / ‖Φ‖_2²: the sum of the squared singular values over the largest of them; not a whole number.

    Args:
        phi: Features φ(s, a), (n, d).
    """
    return _of_spectrum(phi, lambda singular: float((singular**2).sum() / singular[0] ** 2))


def threshold_rank(phi: ArrayLike, *, threshold: float = 0.01) -> float:
    """How many singular values of Φ / √n exceed `threshold` (the feature rank of Lyle et al., 2022).

    The threshold is absolute: unlike all others here, this rank grows when the features are scaled up.

    Args:
        phi: Features φ(s, a), (n, d).
        threshold: The bar.
    """
    return _of_spectrum(phi, lambda singular: int((singular / math.sqrt(len(np.asarray(phi))) > threshold).sum()))


def numerical_rank(phi: ArrayLike, *, epsilon: float = FLOAT32) -> float:
    """How many singular values exceed max(n, d) · epsilon times the largest: what rounding leaves of linear algebra's.

    `epsilon` is float32's unless given: features come from networks that compute in it, and below it is only noise.

    Args:
        phi: Features φ(s, a), (n, d).
        epsilon: The rounding of the numbers.
    """
    limit = max(np.shape(phi)) * epsilon
    return _of_spectrum(phi, lambda singular: int((singular > limit * singular[0]).sum()), exact=True)


def _of_spectrum(phi: ArrayLike, rank: Callable[[Any], float], *, exact: bool = False) -> float:
    matrix = np.asarray(phi, np.float64)
    if not np.isfinite(matrix).all():
        return math.nan
    singular = np.linalg.svd(matrix, compute_uv=False) if exact else _singular_values(matrix)
    return 0 if singular[0] == 0 else rank(singular)


def _singular_values(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """By decreasing size, as the roots of the smaller Gram matrix's eigenvalues: 5 times faster than an SVD.

    What squaring loses in float64, singular values below about 1e-7 of the largest, is far under any delta; there the
    eigenvalues are only rounding, and count as zero.
    """
    gram = matrix @ matrix.T if len(matrix) < matrix.shape[1] else matrix.T @ matrix
    eigenvalues = np.linalg.eigvalsh(gram)[::-1]
    return np.sqrt(np.where(eigenvalues > max(matrix.shape) * np.finfo(float).eps * eigenvalues[0], eigenvalues, 0))


def _smallest_that_holds(amounts: NDArray[np.float64], delta: float) -> int:
    held = np.cumsum(amounts) / amounts.sum()
    # The last entry of a cumulative sum may miss 1 by rounding; it is 1 by definition.
    held[-1] = 1.0
    # A share that is 1 - delta by construction must not fall below it by rounding.
    return int(np.searchsorted(held, 1 - delta - 1e-9, side="left")) + 1
