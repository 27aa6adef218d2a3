"""Evaluation results, under the names by which a run keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

RETURN = "evaluation/return"
DISCOUNTED_VALUE = "evaluation/discounted_value"
SUCCESS = "evaluation/success"
NORMALISED_SCORE = "evaluation/normalised_score"


def outcome_of(returns: ArrayLike, discounted: ArrayLike, lengths: ArrayLike) -> dict[str, Any]:
    """Of some episodes, (n,) each: the raw returns, and means."""
    total, discounted, lengths = (np.asarray(column, np.float64) for column in (returns, discounted, lengths))
    return {
        "returns": total.tolist(),
        RETURN: float(total.mean()),
        DISCOUNTED_VALUE: float(discounted.mean()),
        "evaluation/length": float(lengths.mean()),
    }
