"""Tables put together: COG learns from prior data, whose rewards are set to zero, and task data, as from one log."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.frames import Frames, Observations, compact
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.errors import UserError

_COLUMNS = ("actions", "rewards", "terminals", "timeouts", "next_actions", "next_action_known", "returns")


def without_rewards(table: Transitions) -> Transitions:
    """The same steps with every reward, and so every return, 0.

    Args:
        table: The table.
    """
    nothing = np.zeros(len(table), np.float32)
    return dataclasses.replace(table, rewards=nothing, returns=nothing, name=f"{table.name}-zero-rewards")


def concatenate(tables: Sequence[Transitions]) -> Transitions:
    """The rows of all tables, one table after the other; episodes are numbered anew.

    They must agree in the shape and type of observations, in the actions, and in the discount of their returns. The
    world is kept where all agree on it; what is known of the policies that logged (`next_behavior`, `propensities`)
    where all tables hold theirs. A table without masks allows every action.

    Args:
        tables: The tables, in order.
    """
    first = tables[0]
    for other in tables[1:]:
        _check_alike(first, other)
    observations, next_observations = _observations(tables)
    numbered, behind = [], 0
    for table in tables:
        _, numbers = np.unique(table.episodes, return_inverse=True)
        numbered.append(numbers + behind)
        behind += int(numbers.max()) + 1
    return dataclasses.replace(
        first,
        observations=observations,
        next_observations=next_observations,
        episodes=np.concatenate(numbered).astype(np.int32),
        next_behavior=_if_all_know(tables, "next_behavior"),
        masks=_masks(tables, "masks"),
        next_masks=_masks(tables, "next_masks"),
        propensities=_if_all_know(tables, "propensities"),
        left_out=_summed(tables, "left_out"),
        filled=_summed(tables, "filled"),
        remarks=tuple(dict.fromkeys(one for table in tables for one in table.remarks)),
        schema=first.schema if all(table.schema == first.schema for table in tables) else None,
        entries=first.entries if all(table.entries == first.entries for table in tables) else None,
        name="+".join(table.name for table in tables),
        world=first.world if all(table.world == first.world for table in tables) else None,
        source=None,
        **{name: np.concatenate([getattr(table, name) for table in tables]) for name in _COLUMNS},
    )


def _summed(tables: Sequence[Transitions], name: str) -> tuple[tuple[str, int], ...]:
    """Counts by what is counted, of all tables together."""
    total: dict[str, int] = {}
    for table in tables:
        for what, count in getattr(table, name):
            total[what] = total.get(what, 0) + count
    return tuple(total.items())


def _if_all_know(tables: Sequence[Transitions], column: str) -> NDArray[Any] | None:
    parts = [values for table in tables if (values := getattr(table, column)) is not None]
    return np.concatenate(parts) if len(parts) == len(tables) else None


def _masks(tables: Sequence[Transitions], column: str) -> NDArray[np.bool_] | None:
    space = tables[0].action_space
    parts = [getattr(table, column) for table in tables]
    if all(part is None for part in parts) or not isinstance(space, DiscreteActions):
        return None
    pairs = zip(tables, parts, strict=True)
    return np.concatenate([np.ones((len(t), space.count), np.bool_) if part is None else part for t, part in pairs])


def _check_alike(one: Transitions, other: Transitions) -> None:
    for what, mine, its in (
        ("observations", one.observations.shape[1:], other.observations.shape[1:]),
        ("parts of observations", one.parts, other.parts),
        ("types of observations", str(one.observations.dtype), str(other.observations.dtype)),
        ("actions", one.action_space, other.action_space),
        ("discounts of the returns", one.returns_discount, other.returns_discount),
    ):
        if mine != its:
            raise UserError(f"{one.name} and {other.name} cannot be put together: their {what} are {mine} and {its}.")


def _observations(tables: Sequence[Transitions]) -> tuple[Observations, Observations]:
    """Both columns. Where every table keeps its frames once, so does the whole."""
    pairs = []
    for table in tables:
        now, following = table.observations, table.next_observations
        if not (isinstance(now, Frames) and isinstance(following, Frames)):
            break
        pairs.append(compact(now, following))
    layouts = {(column.bits, column.stack) for pair in pairs for column in pair}
    if len(pairs) < len(tables) or len(layouts) > 1:
        now = np.concatenate([np.asarray(table.observations[:]) for table in tables])
        return now, np.concatenate([np.asarray(table.next_observations[:]) for table in tables])
    stored = np.concatenate([now.stored for now, _ in pairs])
    starts = np.cumsum([0, *(len(now.stored) for now, _ in pairs[:-1])])
    now, following = (
        np.concatenate([pair[side].newest + start for pair, start in zip(pairs, starts, strict=True)]).astype(np.int32)
        for side in (0, 1)
    )
    bits, stack = layouts.pop()
    return Frames(stored, now, bits, stack), Frames(stored, following, bits, stack)
