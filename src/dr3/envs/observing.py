"""One rule for observations with parts, for a world and for a log of it alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def flatten(observation: Any, *, rows: int | None = None) -> NDArray[Any]:
    """Parts into one vector: a mapping's in the alphabetical order of its keys, a tuple's in theirs, at every level.

    A part is unrolled (C order); what is no mapping or tuple stays as it is, images too. With `rows`, every part is a
    column of so many observations, and so is the result. (This is Gymnasium's own order: its Dict spaces sort keys.)

    Args:
        observation: An array, or a mapping or tuple of such, at any depth.
        rows: How many observations each part holds; None where it is one.
    """
    if not isinstance(observation, Mapping | tuple):
        return np.asarray(observation)
    return np.concatenate(
        [np.reshape(leaf, (rows, -1) if rows is not None else -1) for leaf in leaves(observation)], -1
    )


def leaves(observation: Any) -> list[NDArray[Any]]:
    """The parts in their order."""
    if isinstance(observation, Mapping):
        return [leaf for key in sorted(observation) for leaf in leaves(observation[key])]
    if isinstance(observation, tuple):
        return [leaf for part in observation for leaf in leaves(part)]
    return [np.asarray(observation)]


def limits(dtype: np.dtype) -> tuple[float, float]:
    """The least and the greatest that an observation of a type can hold, as a space declares it."""
    if dtype.kind == "f":
        return -np.inf, np.inf
    return (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
