"""In which units a method learns: standardised observations, scaled rewards. Both are part of what was learned."""

from __future__ import annotations

import dataclasses

import numpy as np

from dr3.data.standardisation import Standardisation
from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.methods.base import Spec


def scaled_rewards(data: Transitions, scale: float, shift: float) -> Transitions:
    """The table with scale · (r + shift) for each reward. (Monte-Carlo returns stay those of the rewards as logged.)"""
    if (scale, shift) == (1.0, 0.0):
        return data
    return dataclasses.replace(data, rewards=np.float32(scale) * (data.rewards + np.float32(shift)))


def check_vectors(data: Transitions) -> None:
    """Refuse to standardise pictures: their pixels have one unit, and are divided by 255 already."""
    if data.parts is not None and data.parts.numbers:
        return
    if len(shape := tuple(data.observations.shape[1:])) != 1:
        raise UserError(
            f"standardise is for observations that are vectors; those of {data.name} have the shape {shape}."
        )


def standardisation_for(spec: Spec, standardise: bool) -> Standardisation | None:
    """What a method's networks do to observations; None where it is off."""
    if standardise and spec.standardisation is None:
        raise UserError("standardise needs the mean and deviation of the data: Spec.of(data, standardise=True).")
    return spec.standardisation if standardise else None
