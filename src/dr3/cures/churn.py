"""How much a critic still changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dr3.data.batch import Batch
from dr3.data.transitions import Transitions
from dr3.runs import Runs
from dr3.training.metrics import probe_of


def churn(before: ArrayLike, after: ArrayLike) -> float:
    """Mean |after - before| over mean |after|: how much values changed, as a share of their size.

    Args:
        before: Q(s, a) of the earlier critic, (n,).
        after: Of the later one, at the same pairs.
    """
    earlier, later = np.asarray(before, np.float64), np.asarray(after, np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return float(np.abs(later - earlier).mean() / np.abs(later).mean())


def churn_of(runs: Runs, data: Transitions, steps: Sequence[int]) -> NDArray[np.float64]:
    """Of every member between its checkpoint and the one before, on logged pairs; NaN where there is none before.

    Args:
        runs: The run.
        data: What it was trained on.
        steps: Each member's checkpoint.
    """
    critics: dict[int, Any] = {}  # those of all members, by step
    found = []
    for number, step in enumerate(steps):
        method, place = runs.members[number].method, runs.checkpoints.index(step)
        if place == 0:
            found.append(np.nan)
            continue
        rows = Batch.of(probe_of(method.prepare(data))).all_rows()
        pair = runs.checkpoints[place - 1 : place + 1]
        critics |= {one: list(runs.critics(one)) for one in pair if one not in critics}
        found.append(churn(*(_values(method, critics[one][number], rows) for one in pair)))
    return np.array(found)


@jax.jit
def _values(method: Any, critic: Any, rows: Batch) -> jax.Array:
    return method.values(critic, rows.observations, rows.actions)
