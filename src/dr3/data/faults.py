"""What is suspicious about a table, though nothing forbids it: each finding is one plain sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dr3.data.frames import CHUNK, Observations, chunks, same_rows
from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions
from dr3.envs.parts import Vectors

DUPLICATE_SHARE = 0.01
NARROW_SHARE = 0.01
AT_BOUND_SHARE = 0.25
BOUNDARY_SHARE = 0.5
RETURN_TOLERANCE = 1e-3
FAR, NEAR = 10.0, 0.01  # of a column's mean or deviation: networks are made for numbers around 1
LARGE_REWARD = 100.0
ALONE_SHARE = 0.5
RARE = 0.01


def find_faults(table: Transitions) -> tuple[str, ...]:
    """Every finding, in the order of the columns. Rows are counted from 0. The thresholds:

    - observation vectors: any column that never changes (of images only a log in which nothing ever changes);
    - copies: more than 1 % of the rows repeat an earlier row in (s, a, r, s');
    - ends: neither a terminal nor a time-out anywhere; any episode of a single row;
    - observation vectors: columns far from unit scale, with a mean beyond 10 or a deviation outside 0.01 to 10;
    - rewards: all 0, or all the same where no episode ends (where some do, a constant reward prefers long or short
      episodes); any beyond 100;
    - discrete actions: any that was never taken, or that masks never allow; rows in which only one is allowed, if those
      are more than half;
    - propensities: any below 0.01;
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
        return
    if table.parts is not None:
        low, high, *_ = column_statistics(table.vectors)
        constant = low == high
    if table.vectors.ndim == 2 and constant.any():
        first = int(np.argmax(constant))
        name = column_names(table)[first]
        yield f"{constant.sum()} of {constant.size} observation columns never change (the first is {name})."


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


def _scale(table: Transitions) -> Iterator[str]:
    if table.vectors.ndim != 2 or len(table) < 2:
        return
    _, _, mean, deviation = column_statistics(table.vectors)
    far = [place for place in range(len(mean)) if is_far_from_unit_scale(mean[place], deviation[place])]
    if far:
        name = column_names(table)[far[0]]
        yield (
            f"{len(far)} of {len(mean)} observation columns are far from unit scale (the first is {name}: mean "
            f"{mean[far[0]]:.3g}, deviation {deviation[far[0]]:.3g}); train with --standardise."
        )


def column_names(table: Transitions) -> tuple[str, ...]:
    """What to call each number of observations that are vectors, or of the vectors among their parts."""
    if table.entries is not None:
        return table.entries
    if table.parts is not None:
        return tuple(f"{part.name}[{number}]" for part in table.parts.vectors for number in range(part.size))
    return tuple(f"column {number}" for number in range(table.observations.shape[1]))


def is_far_from_unit_scale(mean: float, deviation: float) -> bool:
    """Whether a network would see a column much larger or smaller than others. A constant one it does not see."""
    return deviation > 0 and (abs(mean) > FAR or deviation > FAR or deviation < NEAR)


def column_statistics(observations: Observations | Vectors) -> tuple[NDArray[np.float64], ...]:
    """Least, most, mean and deviation of each column of observations that are vectors: four of (size,)."""
    size = observations.shape[1]
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    total, squares, rows = np.zeros(size), np.zeros(size), len(observations)
    around = np.asarray(observations[:1], np.float64)[0]  # near the mean, so that the squares lose nothing
    for part in chunks(observations):
        values = part.astype(np.float64)
        low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
        total, squares = total + (values - around).sum(axis=0), squares + ((values - around) ** 2).sum(axis=0)
    mean = total / rows
    deviation = np.where(low == high, 0.0, np.sqrt(np.maximum(squares / rows - mean**2, 0)))
    return low, high, mean + around, deviation


def _rewards(table: Transitions) -> Iterator[str]:
    first, most = table.rewards[0], float(np.abs(table.rewards).max())
    if len(table) > 1 and (table.rewards == first).all():
        if first == 0:
            yield "Every reward is 0, so there is nothing to prefer."
        elif not table.terminals.any():
            yield f"Every reward is {first:g} and no episode ends in a terminal, so there is nothing to prefer."
    if most > LARGE_REWARD:
        scale = 10.0 ** -int(np.floor(np.log10(most)))
        yield f"Rewards reach {most:.4g}, and values will be larger; train with --reward-scale {scale:g}."


def _choices(table: Transitions) -> Iterator[str]:
    if table.masks is None:
        return
    allowed = np.zeros(table.masks.shape[1], np.int64)
    single = 0
    for rows in chunks(table.masks):
        allowed += rows.sum(axis=0)
        single += int((rows.sum(axis=1) == 1).sum())
    if len(never := np.flatnonzero(allowed == 0)):
        yield f"These actions are never allowed by the masks: {', '.join(map(str, never))}."
    if single > ALONE_SHARE * len(table):
        yield f"In {single / len(table):.0%} of the rows only one action is allowed, so there is nothing to choose."


def _propensities(table: Transitions) -> Iterator[str]:
    if table.propensities is None:
        return
    if (rare := int((table.propensities < RARE).sum())) > 0:
        least = float(table.propensities.min())
        yield (
            f"{rare:,} rows have a propensity below {RARE} (the least is {least:.2g}): estimates that weigh rows "
            "by its inverse lean on few of them."
        )


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
    _scale,
    _duplicates,
    _ends,
    _rewards,
    _discrete_actions,
    _choices,
    _propensities,
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
