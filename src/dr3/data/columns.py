"""What every format of ours shares: the columns of a table as plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.transitions import DiscreteActions, Transitions

COLUMNS = (
    "actions",
    "rewards",
    "terminals",
    "timeouts",
    "next_actions",
    "next_action_known",
    "returns",
    "episodes",
)
SOMETIMES = ("next_behavior", "masks", "next_masks", "propensities")  # None where the log does not say


def columns_of(transitions: Transitions) -> dict[str, NDArray[Any]]:
    """All of a table but its observations, under the names that `assemble` reads them by."""
    arrays: dict[str, Any] = {column: getattr(transitions, column) for column in COLUMNS}
    arrays["returns_discount"] = np.float64(transitions.returns_discount)
    arrays["name"] = np.str_(transitions.name)
    if transitions.parts is not None:
        arrays["observation_parts"] = np.str_(transitions.parts.to_json())
    if transitions.world is not None:
        arrays["world"] = np.str_(transitions.world)
    for column in SOMETIMES:
        if (values := getattr(transitions, column)) is not None:
            arrays[column] = values
    space = transitions.action_space
    if isinstance(space, DiscreteActions):
        arrays["num_actions"] = np.int64(space.count)
    else:
        arrays["action_low"], arrays["action_high"] = np.float64(space.low), np.float64(space.high)
    return arrays
