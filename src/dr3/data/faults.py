"""What is suspicious about a table, though nothing forbids it: each finding is one plain sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dr3.data.frames import CHUNK, chunks, same_rows
from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions

DUPLICATE_SHARE = 0.01
NARROW_SHARE = 0.01
AT_BOUND_SHARE = 0.25
BOUNDARY_SHARE = 0.5
RETURN_TOLERANCE = 1e-3


def find_faults(table: Transitions) -> tuple[str, ...]:
    """Every finding, in the order of the columns. Rows are counted from 0. The thresholds:

    - observation vectors: any column that never changes (of images only a log in which nothing ever changes);
    - copies: more than 1 % of the rows repeat an earlier row in (s, a, r, s');
    - ends: neither a terminal nor a time-out anywhere; any episode of a single row;
    - rewards: all the same;
    - discrete actions: any that was never taken;
    - continuous actions: a dimension that uses less than 1 % of the range, or lies exactly on a bound in more than 25 %
      of the rows;
    - boundaries: in at least half of the episodes that do not end in a terminal, the last s' is the first s of the next
      episode: the log was shifted by a row without looking at where episodes end, and bootstraps from a reset;
    - returns: any row where return ≠ reward + discount x next row's return, by more than 0.001 of the largest return
      (not looked for where rows of an episode are missing).
    """
    return tuple(sentence for find in FINDERS for sentence in find(table))


def _constant_observations(table: Transitions) -> Iterator[str]:
    if len(table) < 2:
        return
    first_row = table.observations[:1]
    constant = np.ones(first_row.size, np.bool_)
    for rows in chunks(table.observations):
        constant &= (rows == first_row).reshape(len(rows), -1).all(axis=0)
    if constant.all():
        yield "The observations are the same in every row."
    elif table.observations.ndim == 2 and constant.any():
        first = int(np.argmax(constant))
        yield f"{constant.sum()} of {constant.size} observation columns never change (the first is column {first})."


def _duplicates(table: Transitions) -> Iterator[str]:
    columns = (table.observations, table.actions, table.rewards, table.next_observations)
    hashes = np.empty(len(table), np.int64)  # not a set, which would take ten times as much of a long table
    for start, parts in enumerate(zip(*map(chunks, columns), strict=True)):
        for row in range(len(parts[0])):
            hashes[start * CHUNK + row] = hash(b"".join(column[row].tobytes() for column in parts))
    copies = len(table) - len(np.unique(hashes))
    if copies > DUPLICATE_SHARE * len(table):
        yield (
            f"{copies} of {len(table)} rows repeat an earlier row exactly, which is natural only in a world with few "
            "states."
        )


def _ends(table: Transitions) -> Iterator[str]:
    if not table.terminals.any() and not table.timeouts.any():
        yield "No row is a terminal or a time-out, so nothing in the log says where episodes end."
    lengths = np.diff(np.append(episode_starts(table), len(table)))
    if single := int(np.count_nonzero(lengths == 1)):
        yield f"{single} of {len(lengths)} episodes have a single row."


def _constant_rewards(table: Transitions) -> Iterator[str]:
    if len(table) > 1 and (table.rewards == table.rewards[0]).all():
        yield f"Every reward is {table.rewards[0]:g}, so there is nothing to prefer."


def _discrete_actions(table: Transitions) -> Iterator[str]:
    if isinstance(table.action_space, DiscreteActions):
        counts = np.bincount(table.actions.astype(np.int64), minlength=table.action_space.count)
        if len(never := np.flatnonzero(counts == 0)):
            yield f"Of {len(counts)} actions these were never taken: {', '.join(map(str, never))}."


def _continuous_actions(table: Transitions) -> Iterator[str]:
    space = table.action_space
    if not isinstance(space, ContinuousActions):
        return
    actions = table.actions.astype(np.float32)
    used = (actions.max(axis=0) - actions.min(axis=0)) / (space.high - space.low)
    at_bound = ((actions == np.float32(space.low)) | (actions == np.float32(space.high))).mean(axis=0)
    for dimension in range(space.size):
        if len(table) > 1 and used[dimension] < NARROW_SHARE:
            yield f"Action dimension {dimension} uses only {used[dimension]:.2%} of its range."
        if at_bound[dimension] > AT_BOUND_SHARE:
            yield f"Action dimension {dimension} lies exactly on a bound in {at_bound[dimension]:.0%} of the rows."


def _boundaries(table: Transitions) -> Iterator[str]:
    starts = episode_starts(table)[1:]
    ends = starts - 1
    open_ended = ~table.terminals[ends]
    starts, ends = starts[open_ended], ends[open_ended]
    crossing = ends[same_rows(table.next_observations, ends, table.observations, starts)]
    if len(crossing) and len(crossing) >= BOUNDARY_SHARE * len(ends):
        yield (
            f"In {len(crossing)} of {len(ends)} episodes that do not end in a terminal the last next observation is "
            f"the first observation of the next episode (first in row {crossing[0]}), so it bootstraps from a reset."
        )


def _returns(table: Transitions) -> Iterator[str]:
    """At terminals, and between neighbouring rows unless some row of an episode is missing, as in a subset."""
    expected = table.rewards.astype(np.float64)
    checkable = table.terminals.copy()
    if len(gaps(table)) == 0:
        within = _not_last(table)
        checkable[within] = True
        expected[within] += table.returns_discount * table.returns[within + 1]
    off = checkable & (np.abs(table.returns - expected) > RETURN_TOLERANCE * np.abs(table.returns).max())
    if off.any():
        row = int(np.argmax(off))
        yield (
            f"In {off.sum()} rows the return does not follow from the rewards (first in row {row}: "
            f"{table.returns[row]:g} instead of {expected[row]:g} at discount {table.returns_discount:g})."
        )


FINDERS: tuple[Callable[[Transitions], Iterator[str]], ...] = (
    _constant_observations,
    _duplicates,
    _ends,
    _constant_rewards,
    _discrete_actions,
    _continuous_actions,
    _boundaries,
    _returns,
)


def episode_starts(table: Transitions) -> NDArray[np.intp]:
    """The first row of each episode."""
    return np.flatnonzero(np.append(True, table.episodes[1:] != table.episodes[:-1]))


def gaps(table: Transitions) -> NDArray[np.intp]:
    """Rows that their episode goes on behind, but not from their s': what came between is not in the table."""
    within = _not_last(table)
    return within[~same_rows(table.next_observations, within, table.observations, within + 1)]


def _not_last(table: Transitions) -> NDArray[np.intp]:
    """Rows that are followed by one of their own episode."""
    return np.flatnonzero(table.episodes[1:] == table.episodes[:-1])
