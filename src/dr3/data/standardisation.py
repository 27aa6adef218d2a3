"""Columns of observations at mean 0 and deviation 1, by numbers that are part of a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dr3.data.frames import chunks

CONSTANT = 1e-6  # a column that varies by less than this share of its size is constant, but for rounding


@dataclass(frozen=True)
class Standardisation:
    """(s - mean) / deviation, column by column. A network that has one is given observations as they are logged.

    Plain numbers, not arrays: they belong to a network's structure, as its widths do, so that no optimizer, no target
    network and no fresh draw of weights changes them. A run keeps them in its configuration.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @classmethod
    def of(cls, observations: Any) -> Standardisation:
        """Of all rows of vectors (N, columns); the deviation of a constant column is taken to be 1."""
        mean, square = np.zeros(observations.shape[1]), np.zeros(observations.shape[1])
        for part in chunks(observations):
            mean += np.sum(part, axis=0, dtype=np.float64) / len(observations)
        for part in chunks(observations):
            square += np.sum((np.asarray(part, np.float64) - mean) ** 2, axis=0) / len(observations)
        deviation = np.sqrt(square)
        deviation = np.where(deviation <= CONSTANT * np.abs(mean), 1.0, deviation)
        return cls(*(tuple(np.float32(column).astype(float).tolist()) for column in (mean, deviation)))
