"""Which features still say anything."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def dead_features(phi: ArrayLike, *, tolerance: float = 0.0) -> float:
    """Share of the d features that are zero, or at most `tolerance` in size, on every one of the n rows.

    `phi` is (n, d). A dead ReLU has no gradient either: on these data it stays dead.

    Args:
        phi: Features φ(s, a), (n, d).
        tolerance: What counts as zero.
    """
    return float((np.abs(np.asarray(phi)).max(axis=0) <= tolerance).mean())


def dormant_features(phi: ArrayLike, *, threshold: float = 0.025) -> float:
    """Share of features whose mean size is at most `threshold` times the mean size of all (Sokar et al., 2023).

    Unlike `dead_features` it counts a feature that fires on a few rows, or weakly. All are dormant where all are zero.

    Args:
        phi: Features φ(s, a), (n, d).
        threshold: The bar.
    """
    sizes = np.abs(np.asarray(phi, np.float64)).mean(axis=0)
    return float((sizes <= threshold * sizes.mean()).mean())
