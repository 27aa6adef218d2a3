"""Which rows become transitions, and in which order: by episode and time, with every row that is left out counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import refuse
from dr3.data.tables.encode import Encoder
from dr3.data.tables.source import Span

Flags = NDArray[np.bool_]
CHUNK = 2**20  # rows whose times are looked at together: a long table's are not copied as a whole


@dataclass(frozen=True)
class Order:
    """The rows in order: M of them, of which the N that are `kept` are transitions.

    The others are the last rows of episodes that were cut: their s' is not logged, but they are the s' of another row.
    """

    place: NDArray[np.int32]  # of each row of the files: where it comes in the order, or -1 where it is left out
    last: Flags  # (M,) of its episode, or of the part of it that is not interrupted
    terminals: Flags  # (M,)
    timeouts: Flags  # (M,)
    kept: Flags  # (M,)
    episodes: NDArray[np.int32]  # (M,)
    left_out: tuple[tuple[str, int], ...]
    remarks: tuple[str, ...]

    @property
    def row(self) -> NDArray[np.int32]:
        """The number of the transition that each row in order is, where it is one: (M,)."""
        number = np.cumsum(self.kept, dtype=np.int32)
        number -= 1
        return number


def order_rows(encoder: Encoder) -> Order:
    """Read the columns that say what belongs together, and put the rows in order."""
    keys = _Keys(encoder)
    schema, source = encoder.schema, encoder.source
    rows = len(keys.complete)
    if rows == 0:
        refuse(source.name, "it has 0 rows, so there is nothing to learn from.")
    if rows > np.iinfo(np.int32).max:
        refuse(source.name, f"it has {rows:,} rows, but more than {np.iinfo(np.int32).max:,} cannot be numbered.")
    order = np.flatnonzero(keys.complete).astype(np.int32)
    if not len(order):
        refuse(source.name, "every row has a missing value in a column whose rule is 'drop', so nothing is left.")
    if not _in_order(keys.codes, keys.times):
        by = (keys.times[order], keys.codes[order]) if keys.times is not None else (keys.codes[order],)
        order = order[np.lexsort(by)]
    left_out = list(keys.incomplete.items())
    order, doubled = _without_doubles(encoder, keys, order)
    if doubled:
        left_out.append((f"same episode and time as another row (duplicates = {schema.duplicates!r})", doubled))

    codes, terminals, timeouts = keys.codes[order], keys.terminals[order], keys.timeouts[order] & ~keys.terminals[order]
    new = np.r_[True, codes[1:] != codes[:-1]]
    if schema.episode is None:
        new[1:] |= (terminals | timeouts)[:-1]
    ends = np.r_[new[1:], True]  # of an episode, as far as the log knows it
    _check_ends(encoder, keys, order, terminals | timeouts, ends)
    behind_dropped, before_dropped = _beside_dropped(keys, order)
    open_ended = ends & ~terminals & ~timeouts
    if open_ended.any():
        if schema.ends is None and schema.terminal is None:
            _ask_how_episodes_end(encoder, int(open_ended.sum()))
        # Where an episode's own last row was dropped, the one that is last now is not how it ended.
        terminals = terminals | (open_ended & ~before_dropped & (schema.ends == "terminal"))
        timeouts = timeouts | (open_ended & (before_dropped | (schema.ends == "timeout")))

    interrupted, remarks = _interruptions(encoder, keys, order, new, behind_dropped)
    del keys, codes  # of a long table they are most of the memory
    first = new | interrupted
    last = np.r_[first[1:], True]
    known_next = bool(schema.next_observation) and (schema.mask is None or schema.next_mask is not None)
    kept = ~last | terminals | known_next
    if not kept.any():
        refuse(source.name, "no row is followed by another one of its episode, and 'next_observation' is not logged.")
    if cut := int((~kept).sum()):
        what = "s' is not logged" if not schema.next_observation else "the allowed actions at s' are not logged"
        left_out.append((f"last row of an episode that was cut: {what}", cut))
    # Where the row behind it is left out as such a last row, and where an episode stops, it is cut.
    timeouts = (timeouts | np.r_[~kept[1:] & ~last[:-1], False] | last) & ~terminals
    place = np.full(rows, -1, np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    episodes = np.cumsum(first, dtype=np.int32)
    episodes -= 1
    return Order(place, last, terminals, timeouts, kept, episodes, tuple(left_out), tuple(remarks))


class _Keys:
    """For each row of the files: its episode as a number, its time, its flags, and whether it is complete."""

    def __init__(self, encoder: Encoder) -> None:
        schema = encoder.schema
        self.dates = False
        self.labels: dict[Any, int] = {}
        self.incomplete: dict[str, int] = {}
        dropping = [name for name, rule in schema.missing.items() if rule == "drop"]
        columns = [schema.episode, schema.time, schema.terminal, schema.timeout, *dropping]
        found: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("codes", "times", "ends", "cuts", "complete", "placed")
        }
        self.files: list[tuple[str, int, int]] = []  # file, its first row there, its first row here
        seen = 0
        for part in encoder.source.parts([one for one in columns if one is not None] or [schema.reward]):
            rows = len(part.columns)
            self.files.append((part.where, part.first, seen))
            seen += rows
            complete = np.ones(rows, np.bool_)
            for name in dropping:
                gone = encoder.missing(part.array(name)) & complete
                reason = f"{name!r} is missing"
                self.incomplete[reason] = self.incomplete.get(reason, 0) + int(gone.sum())
                complete &= ~gone
            found["complete"].append(complete)
            found["codes"].append(self._codes(encoder, part, schema.episode, complete))
            found["times"].append(self._times(encoder, part, schema.time, complete))
            found["placed"].append(complete | self._placed(encoder, part))
            for flag, column in (("ends", schema.terminal), ("cuts", schema.timeout)):
                flags = np.zeros(rows, np.bool_)
                if column is not None:
                    flags[complete] = encoder.flags(part.only(complete), column)
                found[flag].append(flags)
        self.incomplete = {reason: count for reason, count in self.incomplete.items() if count}
        # One column after the other, so that the memory of its parts is free again before the next.
        joined = {name: np.concatenate(found.pop(name) or [np.zeros(0, bool)]) for name in list(found)}
        self.codes, self.complete = self._ranked(joined["codes"]), joined["complete"]
        self.placed = joined["placed"]  # rows of which it is known where they come, be they dropped or not
        self.terminals, self.timeouts = joined["ends"], joined["cuts"]
        self.times = joined["times"] if schema.time else None

    def _ranked(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """Episodes in the order of their names, not of the file: a warehouse gives rows in another order each time."""
        ranks = np.zeros(max(1, len(self.labels)), np.int32)
        for rank, label in enumerate(sorted(self.labels)):
            ranks[self.labels[label]] = rank
            self.labels[label] = rank
        return ranks[codes]

    def _placed(self, encoder: Encoder, part: Span) -> Flags:
        placed = np.ones(len(part.columns), np.bool_)
        for column in (encoder.schema.episode, encoder.schema.time):
            if column is not None:
                placed &= ~encoder.missing(part.array(column))
        return placed

    def _codes(self, encoder: Encoder, part: Span, column: str | None, complete: Flags) -> NDArray[np.int32]:
        if column is None:
            return np.zeros(len(complete), np.int32)
        array = part.array(column)
        encoder.refuse_missing(part, column, encoder.missing(array) & complete)
        array = array if encoder.pyarrow.types.is_dictionary(array.type) else array.dictionary_encode()
        names = array.dictionary.to_pylist()
        numbers = np.array([self.labels.setdefault(name, len(self.labels)) for name in names] or [0], np.int32)
        return numbers[np.asarray(array.indices.fill_null(0))]

    def _times(self, encoder: Encoder, part: Span, column: str | None, complete: Flags) -> NDArray[Any]:
        if column is None:
            return np.zeros(0)
        array, pyarrow = part.array(column), encoder.pyarrow
        encoder.refuse_missing(part, column, encoder.missing(array) & complete)
        if pyarrow.types.is_date(array.type):
            array = array.cast(pyarrow.timestamp("s"))
        if pyarrow.types.is_timestamp(array.type):
            self.dates = True
            # Nanoseconds as whole numbers: as floats, two times of one second could be one.
            array = array.cast(pyarrow.timestamp("ns", tz=array.type.tz)).cast(pyarrow.int64())
        elif not encoder.is_number(array.type):
            encoder.refuse_type(part.where, column, array.type, "a time is a number or a date")
        return array.fill_null(0).to_numpy(zero_copy_only=False)

    def where(self, row: int) -> str:
        """The file of a row, and its number there."""
        for file, first, start in reversed(self.files):
            if row >= start:
                return (
                    f"row {first + row - start} of {file}" if len({one[0] for one in self.files}) > 1 else f"row {row}"
                )
        return f"row {row}"

    def label(self, row: int) -> Any:
        code = int(self.codes[row])
        return next((name for name, number in self.labels.items() if number == code), code)


def _in_order(codes: NDArray[np.int32], times: NDArray[Any] | None) -> bool:
    """Whether rows are in the order of episodes and times already."""
    if (codes[1:] < codes[:-1]).any():
        return False
    return times is None or not ((codes[1:] == codes[:-1]) & (times[1:] < times[:-1])).any()


def _without_doubles(encoder: Encoder, keys: _Keys, order: NDArray[np.int32]) -> tuple[NDArray[np.int32], int]:
    schema = encoder.schema
    if keys.times is None or schema.episode is None:
        return order, 0
    codes = keys.codes[order]
    same = _where_time(keys.times, order, lambda passed: passed == 0)[1:] & (codes[1:] == codes[:-1])
    if not same.any():
        return order, 0
    if schema.duplicates == "refuse":
        one, other = (keys.where(int(order[int(np.argmax(same)) + number])) for number in (0, 1))
        refuse(
            encoder.source.name,
            f"{one} and {other} are both of episode {keys.label(int(order[int(np.argmax(same))]))!r} at one time in "
            f"{schema.time!r} ({same.sum():,} such rows); keep one of them with duplicates = 'first' or 'last' in the "
            "schema, or name a finer time.",
        )
    drop = np.r_[False, same] if schema.duplicates == "first" else np.r_[same, False]
    return order[~drop], int(drop.sum())


def _check_ends(encoder: Encoder, keys: _Keys, order: NDArray[np.int32], flagged: Flags, ends: Flags) -> None:
    """A terminal or a time-out is on the last row of its episode."""
    early = flagged & ~ends
    if early.any():
        place = int(np.argmax(early))
        row, behind = int(order[place]), int(order[place + 1])
        schema = encoder.schema
        column = schema.terminal if keys.terminals[row] else schema.timeout
        refuse(
            encoder.source.name,
            f"{keys.where(row)} ends episode {keys.label(row)!r} in {column!r}, but {keys.where(behind)} goes on "
            f"with it ({early.sum():,} such rows).",
        )


def _ask_how_episodes_end(encoder: Encoder, count: int) -> None:
    column = encoder.schema.timeout
    marked = f"only {column!r} marks ends" if column else "the schema names neither 'terminal' nor 'timeout'"
    refuse(
        encoder.source.name,
        f"nothing says how {count:,} episodes end ({marked}); name the column, or write ends = 'terminal' if nothing "
        "follows an episode's last row, or ends = 'timeout' if the log only stops there.",
    )


def _interruptions(
    encoder: Encoder, keys: _Keys, order: NDArray[np.int32], new: Flags, interrupted: Flags
) -> tuple[Flags, list[str]]:
    """Where rows of an episode are missing: before this row one was dropped, or the time jumps by more than a step."""
    schema = encoder.schema
    remarks: list[str] = []
    if lost := int((~keys.placed).sum()):
        remarks.append(
            f"{lost:,} rows that were left out name no episode or no time, so it is not known where they are missing."
        )
    if keys.times is None:
        if schema.episode is not None:
            remarks.append("The schema names no 'time', so rows of an episode are in the order of the file.")
        return interrupted & ~new, remarks
    if schema.step is not None:
        step = schema.step * (1e9 if keys.dates else 1)
        gap = _where_time(keys.times, order, lambda passed: passed > 1.5 * step) & ~new
        if gap.any():
            remarks.append(
                f"In {gap.sum():,} places the time jumps by more than step = {schema.step:g}: rows are missing there, "
                "and the episode is cut."
            )
        return (interrupted | gap) & ~new, remarks
    if not keys.dates and np.issubdtype(keys.times.dtype, np.integer):
        inside = ~new & ~interrupted
        less, more = (
            int((_where_time(keys.times, order, holds) & inside).sum())
            for holds in (lambda passed: passed < 1, lambda passed: passed > 1)
        )
        if more and 2 * max(less, more) < int(inside.sum()):  # the median is 1
            remarks.append(
                f"In {more:,} places {schema.time!r} jumps by more than 1 inside an episode; if rows are missing "
                "there, write step = 1 in the schema, and the episode is cut there."
            )
    return interrupted & ~new, remarks


def _where_time(times: NDArray[Any], order: NDArray[np.int32], holds: Callable[[NDArray[Any]], Flags]) -> Flags:
    """Where something holds of the time that has passed since the row before: (M,), False of the first row."""
    found = np.zeros(len(order), np.bool_)
    for start in range(0, len(order) - 1, CHUNK):
        passed = np.diff(times[order[start : start + CHUNK + 1]])
        found[start + 1 : start + 1 + len(passed)] = holds(passed)
    return found


def _beside_dropped(keys: _Keys, order: NDArray[np.int32]) -> tuple[Flags, Flags]:
    """Rows in front of which, and rows behind which, one of the same episode was dropped for a missing value."""
    behind, before = np.zeros((2, len(keys.complete)), np.bool_)
    if keys.complete.all():
        return behind[order], before[order]
    rows = np.flatnonzero(keys.placed)
    times = rows if keys.times is None else keys.times[rows]
    rows = rows[np.lexsort((times, keys.codes[rows]))]
    complete, same = keys.complete[rows], keys.codes[rows[1:]] == keys.codes[rows[:-1]]
    behind[rows[1:]] = same & ~complete[:-1] & complete[1:]
    before[rows[:-1]] = same & complete[:-1] & ~complete[1:]
    return behind[order], before[order]
