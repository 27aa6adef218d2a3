"""What a table holds, before anything is trained on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.faults import column_names, column_statistics, episode_starts, find_faults, is_far_from_unit_scale
from dr3.data.frames import chunks
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.envs.parts import KINDS
from dr3.errors import UserError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

MOST_COLUMNS = 60  # that are shown on a terminal


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
class ColumnSummary:
    """One number of an observation, over all rows."""

    name: str
    minimum: float
    maximum: float
    mean: float
    deviation: float
    missing: int  # rows in which it was filled
    picture: bool = False  # all of its pixels, in whose scale networks expect them

    @property
    def note(self) -> str:
        """What a reader should look at, in a word or two."""
        if self.minimum == self.maximum:
            return "constant"
        return "far from unit scale" if not self.picture and is_far_from_unit_scale(self.mean, self.deviation) else ""


@dataclass(frozen=True)
class Allowed:
    """What masks say: how often each action was allowed, and how often there was a choice at all."""

    shares: tuple[float, ...]  # of the rows, for each action
    mean: float  # actions allowed in a row
    without_choice: float  # share of rows with one


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
    action_names: tuple[str, ...] | None  # discrete, where a schema names them
    columns: tuple[ColumnSummary, ...] | None  # of observations that are vectors, or of the vectors among their parts
    pictures: tuple[ColumnSummary, ...]  # among the parts of observations: all pixels of each together
    left_out: tuple[tuple[str, int], ...]  # rows of the log that are not here: why, and how many
    allowed: Allowed | None  # where the log has masks
    propensities: Spread | None  # where the log has them
    faults: tuple[str, ...]  # see `find_faults` for what is looked for


def describe(transitions: Transitions) -> Description:
    """Sizes, spreads and ranges of a table, and what is suspicious about it.

    Args:
        transitions: The table to write.
    """
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
        observation_range=_range_of_rows(transitions.vectors),
        action_space=action_space,
        action_counts=action_counts,
        action_ranges=action_ranges,
        action_names=_action_names(transitions),
        columns=_columns(transitions),
        pictures=_pictures(transitions),
        left_out=transitions.left_out,
        allowed=None if transitions.masks is None else _allowed(transitions.masks),
        propensities=None if transitions.propensities is None else _spread(transitions.propensities),
        faults=(*transitions.remarks, *find_faults(transitions)),
    )


def _action_names(table: Transitions) -> tuple[str, ...] | None:
    labels = None if table.schema is None else table.schema.categories.get(str(table.schema.action))
    return None if labels is None else tuple(map(str, labels))


def _columns(table: Transitions) -> tuple[ColumnSummary, ...] | None:
    if table.vectors.ndim != 2:
        return None
    names, filled = column_names(table), dict(table.filled)
    low, high, mean, deviation = column_statistics(table.vectors)
    numbers = zip(low.tolist(), high.tolist(), mean.tolist(), deviation.tolist(), strict=True)
    return tuple(ColumnSummary(name, *four, filled.get(name, 0)) for name, four in zip(names, numbers, strict=True))


def _pictures(table: Transitions) -> tuple[ColumnSummary, ...]:
    found = []
    for start, end, part in () if table.parts is None else table.parts.places():
        if not part.is_picture:
            continue
        low, high, total, squares = np.inf, -np.inf, 0.0, 0.0
        for rows in chunks(table.observations):
            values = np.ascontiguousarray(rows[:, start:end]).view(KINDS[part.kind])
            low, high = min(low, float(values.min())), max(high, float(values.max()))
            total += float(values.sum(dtype=np.float64))
            squares += float(np.square(values, dtype=np.float64).sum())
        mean = total / (count := len(table) * part.size)
        deviation = float(np.sqrt(max(squares / count - mean**2, 0.0)))
        found.append(ColumnSummary(f"{part.name} {part.shape}", low, high, mean, deviation, 0, picture=True))
    return tuple(found)


def _allowed(masks: NDArray[np.bool_]) -> Allowed:
    counts = np.zeros(masks.shape[1])
    choices = single = 0
    for rows in chunks(masks):
        open_to = rows.sum(axis=1)
        counts += rows.sum(axis=0)
        choices, single = choices + int(open_to.sum()), single + int((open_to == 1).sum())
    return Allowed(tuple((counts / len(masks)).tolist()), choices / len(masks), single / len(masks))


def table(description: Description) -> RenderableType:
    """The description as tables of the terminal: the whole, each column, and the findings last.

    Args:
        description: What `describe` gave.
    """
    from rich.console import Group

    tables = [_whole(description)]
    if description.columns is not None:
        tables.append(_by_column((*description.columns, *description.pictures)))
    return Group(*tables, _findings(description.faults))


def _whole(description: Description) -> Table:
    low, high = description.observation_range
    seen = f"{description.observation_shape} {description.observation_dtype}"
    if description.pictures:  # rows of bytes, which are nothing to look at
        seen = f"{', '.join(one.name for one in description.pictures)} and {len(description.columns or ())} numbers"
    lines = [
        ("world", description.world or "unknown"),
        ("rows", f"{description.rows:,} in {description.episodes:,} episodes"),
        *((f"  left out: {count:,}", reason) for reason, count in description.left_out),
        ("episode length", str(description.episode_lengths)),
        ("episode return", str(description.episode_returns)),
        ("ends", f"{description.terminals:,} terminals, {description.timeouts:,} time-outs"),
        ("rows without a'", f"{description.unknown_next_actions:,}"),
        ("rewards", f"{_interval(description.reward_range)}, {description.nonzero_rewards:.1%} nonzero"),
        ("observations", f"{seen}, {_interval((low, high))}"),
        ("actions", description.action_space),
    ]
    if description.action_counts is not None:
        names = description.action_names or tuple(
            f"action {number}" for number in range(len(description.action_counts))
        )
        for number, (name, count) in enumerate(zip(names, description.action_counts, strict=True)):
            share = f", allowed in {description.allowed.shares[number]:.1%} of the rows" if description.allowed else ""
            lines.append((f"  {name}", f"{count:,}{share}"))
    if description.action_ranges is not None:
        lines += [(f"  dimension {index}", _interval(ends)) for index, ends in enumerate(description.action_ranges)]
    if description.allowed is not None:
        open_to = description.allowed
        alone = f"a single one in {open_to.without_choice:.1%} of the rows"
        lines.append(("allowed", f"{open_to.mean:.3g} actions on average, {alone}"))
    if description.propensities is not None:
        lines.append(("propensities", str(description.propensities)))
    return _rows(description.name, lines)


def _by_column(columns: tuple[ColumnSummary, ...]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    shown = Table(title="observations, by column")
    for title in ("column", "least", "most", "mean", "deviation", "missing", ""):
        shown.add_column(title, justify="left" if title in ("column", "") else "right")
    for one in columns[:MOST_COLUMNS]:
        numbers = (one.minimum, one.maximum, one.mean, one.deviation)
        shown.add_row(escape(one.name), *(f"{value:.4g}" for value in numbers), f"{one.missing or ''}", one.note)
    if len(columns) > MOST_COLUMNS:
        shown.add_row(f"… {len(columns) - MOST_COLUMNS:,} more: --json has all of them")
    return shown


def _findings(faults: tuple[str, ...]) -> Table:
    return _rows(None, [("look at", sentence) for sentence in faults or ("nothing suspicious found",)])


def _rows(title: str | None, lines: list[tuple[str, str]]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    shown = Table(title=None if title is None else escape(title), show_header=False)
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    for label, value in lines:
        shown.add_row(escape(label), escape(value))
    return shown


def _spread(values: NDArray[np.number]) -> Spread:
    quartiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    return Spread(*(float(value) for value in quartiles), mean=float(values.mean()))


def _range(values: NDArray[np.generic]) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _range_of_rows(column: Any) -> tuple[float, float]:
    ranges = [_range(rows) for rows in chunks(column) if rows.size] or [(0.0, 0.0)]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.4g} to {ends[1]:.4g}"
