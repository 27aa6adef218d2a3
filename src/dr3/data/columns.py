"""What every format of ours shares: the columns of a table as plain arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import refuse
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


def columns_of(transitions: Transitions) -> dict[str, NDArray[Any]]:
    """All of a table but its observations, under the names that `assemble` reads them by."""
    arrays: dict[str, Any] = {column: getattr(transitions, column) for column in COLUMNS}
    arrays["returns_discount"] = np.float64(transitions.returns_discount)
    arrays["name"] = np.str_(transitions.name)
    if transitions.world is not None:
        arrays["world"] = np.str_(transitions.world)
    if transitions.next_behavior is not None:
        arrays["next_behavior"] = transitions.next_behavior
    space = transitions.action_space
    if isinstance(space, DiscreteActions):
        arrays["num_actions"] = np.int64(space.count)
    else:
        arrays["action_low"], arrays["action_high"] = np.float64(space.low), np.float64(space.high)
    return arrays


def first_bytes(path: Path, count: int) -> bytes:
    """The beginning of a file, or the sentence that says why there is none."""
    source = str(path)
    if path.is_dir():
        refuse(source, "this is a folder, but a file is needed.")
    if not path.exists():
        refuse(source, "there is no such file.")
    try:
        with path.open("rb") as file:
            head = file.read(count)
    except OSError as error:
        refuse(source, f"the file cannot be opened ({error.strerror}).")
    if not head:
        refuse(source, "the file is empty (0 bytes).")
    return head
