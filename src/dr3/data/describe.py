"""What a table holds, before anything is trained on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dr3.data.faults import episode_starts, find_faults
from dr3.data.frames import Observations, chunks
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Spread:
    """How one number differs between episodes; the quartiles are interpolated."""

    minimum: float
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float
    mean: float

    def __str__(self) -> str:
        quartiles = (self.minimum, self.lower_quartile, self.median, self.upper_quartile, self.maximum)
        return f"{' | '.join(f'{value:.4g}' for value in quartiles)} (mean {self.mean:.4g})"


@dataclass(frozen=True)
class Description:
    """Plain numbers and text only: `dataclasses.asdict` of it can be written as JSON."""

    name: str
    world: str | None
    fingerprint: str
    rows: int
    episodes: int
    episode_lengths: Spread
    episode_returns: Spread  # undiscounted, of the rows that are in the table
    terminals: int
    timeouts: int
    unknown_next_actions: int  # rows without a logged a'; a terminal needs none
    returns_discount: float
    reward_range: tuple[float, float]
    nonzero_rewards: float  # a fraction of the rows
    observation_shape: tuple[int, ...]
    observation_dtype: str
    observation_range: tuple[float, float]
    action_space: str
    action_counts: tuple[int, ...] | None  # discrete: rows for each action
    action_ranges: tuple[tuple[float, float], ...] | None  # continuous: least and most in each dimension
    faults: tuple[str, ...]  # see `find_faults` for what is looked for


def describe(transitions: Transitions) -> Description:
    """Sizes, spreads and ranges of a table, and what is suspicious about it."""
    if len(transitions) == 0:
        raise UserError(f"The table {transitions.name!r} has no rows, so there is nothing to describe.")
    starts = episode_starts(transitions)
    space = transitions.action_space
    if isinstance(space, DiscreteActions):
        action_space = f"{space.count} discrete actions"
        counts = np.bincount(transitions.actions.astype(np.int64), minlength=space.count)
        action_counts, action_ranges = tuple(int(count) for count in counts), None
    else:
        action_space = f"{space.size} continuous numbers from {space.low:g} to {space.high:g}"
        action_counts, action_ranges = None, tuple(_range(column) for column in transitions.actions.T)
    return Description(
        name=transitions.name,
        world=transitions.world,
        fingerprint=transitions.fingerprint(),
        rows=len(transitions),
        episodes=len(starts),
        episode_lengths=_spread(np.diff(np.append(starts, len(transitions)))),
        episode_returns=_spread(np.add.reduceat(transitions.rewards.astype(np.float64), starts)),
        terminals=int(transitions.terminals.sum()),
        timeouts=int(transitions.timeouts.sum()),
        unknown_next_actions=int((~transitions.next_action_known).sum()),
        returns_discount=float(transitions.returns_discount),
        reward_range=_range(transitions.rewards),
        nonzero_rewards=float((transitions.rewards != 0).mean()),
        observation_shape=transitions.observations.shape[1:],
        observation_dtype=str(transitions.observations.dtype),
        observation_range=_range_of_rows(transitions.observations),
        action_space=action_space,
        action_counts=action_counts,
        action_ranges=action_ranges,
        faults=find_faults(transitions),
    )


def table(description: Description) -> Table:
    """The description as a table of the terminal, the findings last."""
    from rich.markup import escape
    from rich.table import Table

    shown = Table(title=escape(description.name), show_header=False)
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    low, high = description.observation_range
    lines = [
        ("world", description.world or "unknown"),
        ("rows", f"{description.rows:,} in {description.episodes:,} episodes"),
        ("episode length", str(description.episode_lengths)),
        ("episode return", str(description.episode_returns)),
        ("ends", f"{description.terminals:,} terminals, {description.timeouts:,} time-outs"),
        ("rows without a'", f"{description.unknown_next_actions:,}"),
        ("rewards", f"{_interval(description.reward_range)}, {description.nonzero_rewards:.1%} nonzero"),
        ("observations", f"{description.observation_shape} {description.observation_dtype}, {_interval((low, high))}"),
        ("actions", description.action_space),
    ]
    if description.action_counts is not None:
        lines += [(f"  action {action}", f"{count:,}") for action, count in enumerate(description.action_counts)]
    if description.action_ranges is not None:
        lines += [(f"  dimension {index}", _interval(ends)) for index, ends in enumerate(description.action_ranges)]
    lines += [("look at", sentence) for sentence in description.faults or ("nothing suspicious found",)]
    for label, value in lines:
        shown.add_row(label, escape(value))
    return shown


def _spread(values: NDArray[np.number]) -> Spread:
    quartiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    return Spread(*(float(value) for value in quartiles), mean=float(values.mean()))


def _range(values: NDArray[np.generic]) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _range_of_rows(column: Observations) -> tuple[float, float]:
    ranges = [_range(rows) for rows in chunks(column)]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.4g} to {ends[1]:.4g}"
