"""A table of logged decisions as `Transitions`: rows in order, columns as numbers, in memory or in a file of rows."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.assemble import NEVER_ENDS, plain_name
from dr3.data.checks import MOST_ACTIONS, refuse
from dr3.data.frames import CHUNK
from dr3.data.gate import LARGE, announce, cache_beside, gated
from dr3.data.mapped import let_go
from dr3.data.row_cache import UnpackedRows, cached_rows, fits_in_memory
from dr3.data.tables.encode import Encoder
from dr3.data.tables.order import Order, order_rows
from dr3.data.tables.schema import Schema
from dr3.data.tables.source import Source, Span, open_source
from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions, monte_carlo_returns
from dr3.errors import UserError
from dr3.progress import Reporter, reporter

SAME = 1e-5  # of an observation: what was logged twice may have been rounded twice
FORM = 2  # of what is unpacked; a cache of another form is made anew
MANY = 1_000_000  # rows: some seconds, which are not passed in silence


@gated
def read_table(
    given: Any,
    *,
    schema: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    discount: float = 0.99,
    cache: str | os.PathLike[str] | None = None,
) -> Transitions:
    """Read rows of logged decisions: Parquet, CSV, Arrow (Feather), a folder of them, or a table in memory.

    Rows are put in order by episode and time. A row's s', a' and allowed next actions are those of the next row of its
    episode, unless the schema names columns for them. The last row of an episode that was cut has no s' and is left
    out; so are rows that the schema says to drop. How many, and why, is in `left_out`.

    A table that would take much of the memory is unpacked once into a file of rows, and mapped from there.

    Args:
        given: A file, a folder, or anything with Arrow's stream interface (pyarrow, pandas, polars, DuckDB).
        schema: What the columns mean: a `Schema`, a mapping, or a TOML file.
        discount: γ of the Monte-Carlo returns.
        cache: A folder to unpack the table into, however small it is; by default one beside the file, if it is large.

    Raises:
        UserError: The table and its schema do not fit, or a row is wrong: the sentence names file, column and row.
    """
    word = str(given) if isinstance(given, str | Path) else f"a {type(given).__name__}"
    if schema is None:
        raise UserError(
            f"{word}: a table needs a schema that says what its columns mean; `dr3 data schema FILE > schema.toml` "
            "writes a first guess, and FILE:schema=schema.toml uses it (in Python: schema=)."
        )
    wanted = Schema.of(schema)
    exact = {*wanted.categories, *(one for one in (wanted.episode, wanted.time) if one)}
    exact |= {one for one in (wanted.action, wanted.next_action) if isinstance(one, str)}
    source = open_source(given, exact=exact)
    plan = _Plan(source, wanted.resolved(source.names, source.name))
    count = source.rows()
    size = count * plan.dtype.itemsize
    if source.files:  # into a cache whatever the disk holds; but a small file is not believed to be a large table
        stored = sum(file.stat().st_size for file in source.files)
        announce(source.name, max(min(size, 2 * LARGE), source.largest_piece()), stored)
    if cache is None and (not source.files or fits_in_memory(size)):
        rows = plan.read(np.zeros)
    else:
        if not source.files:
            refuse(source.name, "only what is in a file can be unpacked into a cache.")
        folder = Path(cache) if cache is not None else _beside(source)
        key = {"form": FORM, "files": [_stamp(file) for file in source.files], "schema": plan.schema.to_toml()}
        rows = cached_rows(folder, source.name, key, size, plan.read)
    return _as_table(plan, rows, discount)


class _Plan:
    """What will be in a row, before any is read: it follows from the schema and the types of the columns."""

    def __init__(self, source: Source, schema: Schema) -> None:
        self.source = source
        self.schema = schema = dataclasses.replace(schema, sizes={**_sizes(source, schema), **schema.sizes})
        self.encoder = Encoder(schema, source)
        self.continuous = not isinstance(schema.action, str) or schema.action in schema.sizes
        if self.continuous and schema.mask is not None:
            refuse(source.name, "the schema's 'mask' says which actions are allowed, but 'action' is a vector.")
        self.actions = self._size() if self.continuous else self._count()
        self.dtype = self._row()

    def _size(self) -> int:
        action = self.schema.action
        return self.schema.sizes[action] if isinstance(action, str) else len(action)

    def _count(self) -> int:
        """How many discrete actions there are: said, listed, as many as the mask has, or one more than the largest."""
        schema, name = self.schema, self.source.name
        if schema.action_low is not None or schema.action_high is not None:
            refuse(name, "the schema's 'action_low' and 'action_high' are for actions that are vectors.")
        labels = schema.categories.get(str(schema.action))
        if labels is not None:
            if schema.num_actions not in (None, len(labels)):
                refuse(name, f"the schema's 'num_actions' is {schema.num_actions}, but it lists {len(labels)} actions.")
            return len(labels)
        if schema.num_actions is not None:
            return schema.num_actions
        if isinstance(schema.mask, tuple):
            return len(schema.mask)
        column = str(schema.action)
        most = 0
        for part in self.source.parts([column]):
            values = self.encoder.choices(part, column, column, ~self.encoder.missing(part.array(column)))
            most = max(most, int(values.max(initial=0)))
        if most >= MOST_ACTIONS:
            refuse(name, f"{column!r} holds action {most}, but the last one can be {MOST_ACTIONS - 1} at most.")
        return most + 1

    def _row(self) -> np.dtype[Any]:
        parts = self.encoder.parts
        seen = ("f4", self.encoder.size) if parts is None else ("u1", parts.nbytes)
        action = ("f4", self.actions) if self.continuous else ("i4", ())
        fields: list[tuple[str, str, Any]] = [
            ("observations", *seen),
            ("next_observations", *seen),
            ("actions", *action),
            ("next_actions", *action),
            ("rewards", "f4", ()),
            ("reward_beyond", "f4", ()),  # of the row behind it, where that one is left out: it counts in the return
            ("episodes", "i4", ()),
            ("terminals", "?", ()),
            ("timeouts", "?", ()),
            ("next_action_known", "?", ()),
        ]
        if self.schema.propensity is not None:
            fields.append(("propensities", "f4", ()))
        if self.schema.mask is not None:
            fields += [("masks", "?", self.actions), ("next_masks", "?", self.actions)]
        return np.dtype([(name, kind, shape if isinstance(shape, tuple) else (shape,)) for name, kind, shape in fields])

    def read(self, allocate: Any) -> UnpackedRows:
        """Two passes: the columns that say the order, then all that are used, some rows at a time."""
        order = order_rows(self.encoder)
        out = allocate(int(order.kept.sum()), self.dtype)
        numbers, start, began = order.row, 0, time.monotonic()
        total = len(order.place)
        with reporter(self.source.title, 0, total, show=total >= MANY, unit="rows") as progress:
            for part in self.source.parts(self._columns()):
                place = order.place[start : start + len(part.columns)]
                start += len(part.columns)
                self._write(out, part.only(place >= 0), place[place >= 0], order, numbers)
                let_go(out)
                _report(progress, start, began)
        missing = self._cut_where_rows_are_missing(out) if self.schema.next_observation else ()
        filled = tuple(
            f"{name!r} was missing in {count:,} rows and taken to be {self.schema.missing[name]:g}."
            for name, count in self.encoder.filled.items()
            if name not in self.schema.observation
        )
        never = not order.terminals.any() and self.schema.timeout is None and self.schema.ends is None
        remarks = (*order.remarks, *missing, *filled, *((NEVER_ENDS,) if never else ()))
        return UnpackedRows(out, order.left_out, tuple(self.encoder.filled.items()), remarks)

    def _cut_where_rows_are_missing(self, out: Any) -> tuple[str, ...]:
        """Where a logged s' is not the observation of the row behind it, that row is not what came next."""
        breaks = np.zeros(len(out), np.bool_)
        for start in range(0, len(out) - 1, CHUNK):
            some = out[start : start + CHUNK + 1]
            logged, seen = some["next_observations"][:-1], some["observations"][1:]
            if self.encoder.parts is None:
                other = (np.abs(logged - seen) > SAME * (1 + np.abs(seen))).any(axis=1)
            else:
                other = (logged != seen).any(axis=1)
            breaks[start : start + len(other)] = other & (some["episodes"][1:] == some["episodes"][:-1])
            let_go(out)
        if not (count := int(breaks.sum())):
            return ()
        what = f"In {count:,} rows the logged s' is not the observation of the row behind it"
        if self.schema.mask is not None and self.schema.next_mask is None:
            refuse(
                self.source.name,
                f"{what[0].lower()}{what[1:]}, so that row's mask is not what was allowed at s'; name 'next_mask', or "
                "leave 'next_observation' out if rows do follow each other.",
            )
        before = 0
        for start in range(0, len(out), CHUNK):
            some, cut = out[start : start + CHUNK], breaks[start : start + CHUNK]
            done = np.cumsum(cut)
            some["episodes"] += (before + done - cut).astype(np.int32)
            some["timeouts"] |= cut
            if self.schema.next_action is None:
                some["next_actions"][cut] = 0
                some["next_action_known"][cut] = False
            before += int(done[-1])
            let_go(out)
        return (f"{what}: rows are missing there, and the episode is cut.",)

    def _columns(self) -> list[str]:
        schema = self.schema
        found: list[str] = [*schema.observation, *schema.next_observation, schema.reward]
        for several in (schema.action, schema.next_action, schema.mask, schema.next_mask, schema.propensity):
            found += [several] if isinstance(several, str) else several or ()
        return found

    def _write(self, out: Any, part: Span, place: NDArray[np.int32], order: Order, numbers: NDArray[np.int32]) -> None:
        """Each row at its place, and in the row before it, whose s' it is."""
        schema, encoder = self.schema, self.encoder
        if not len(place):
            return
        terminal = order.terminals[place]
        values: dict[str, Any] = {
            "observations": encoder.observations(part, schema.observation),
            "actions": self._actions(part, schema.action),
            "rewards": encoder.numbers(part, schema.reward),
            "episodes": order.episodes[place],
            "terminals": terminal,
            "timeouts": order.timeouts[place],
        }
        if schema.propensity is not None:
            values["propensities"] = self._propensities(part, schema.propensity)
        if schema.mask is not None:
            values["masks"] = self._masks(part, schema.mask, values["actions"])
        following: dict[str, Any] = {}
        if schema.next_observation:
            logged = encoder.observations(part, schema.next_observation, ~terminal)
            following["next_observations"] = np.where(terminal[:, None], values["observations"], logged)
        if schema.next_action is not None:
            following["next_actions"] = self._actions(part, schema.next_action, ~terminal)
            following["next_actions"][terminal] = 0
            following["next_action_known"] = ~terminal
        if schema.next_mask is not None:
            logged = encoder.masks(part, schema.next_mask, self.actions, ~terminal)
            following["next_masks"] = logged | terminal[:, None]

        kept = order.kept[place]
        here = numbers[place[kept]]
        for name, column in {**values, **following}.items():
            out[name][here] = column[kept]
        for name, column in _behind_terminals(values, following).items():
            ended = kept & terminal
            out[name][numbers[place[ended]]] = column[ended]
        before = place - 1
        follows = (place > 0) & ~order.last[before] & order.kept[before]
        there = numbers[before[follows]]
        shared = {"next_observations": "observations", "next_actions": "actions", "next_masks": "masks"}
        for name, own in shared.items():
            if own in values and name not in following:
                out[name][there] = values[own][follows]
        if "next_actions" not in following:
            out["next_action_known"][there] = True
        beyond = follows & ~kept
        out["reward_beyond"][numbers[before[beyond]]] = values["rewards"][beyond]

    def _actions(self, part: Span, column: str | tuple[str, ...], only: NDArray[np.bool_] | None = None) -> Any:
        if self.continuous:
            return self._within(part, self.encoder.vectors(part, column, only), only)
        assert isinstance(column, str)
        chosen = self.encoder.choices(part, column, str(self.schema.action), only)
        outside = (chosen < 0) | (chosen >= self.actions)
        if (outside := outside if only is None else outside & only).any():
            row = int(np.argmax(outside))
            refuse(
                part.where,
                f"row {part.row(row)} of {column!r} is {chosen[row]}, but the actions go from 0 to {self.actions - 1}.",
            )
        return chosen.astype(np.int32)

    def _within(self, part: Span, actions: NDArray[np.float32], only: NDArray[np.bool_] | None) -> NDArray[np.float32]:
        low, high = self.bounds
        outside = ((actions < np.float32(low)) | (actions > np.float32(high))).any(axis=1)
        if (outside := outside if only is None else outside & only).any():
            row = int(np.argmax(outside))
            refuse(
                part.where,
                f"row {part.row(row)} of 'action' holds {actions[row].tolist()}, but the actions go from {low:g} to "
                f"{high:g}; set 'action_low' and 'action_high' in the schema if the range is another.",
            )
        return actions

    @property
    def bounds(self) -> tuple[float, float]:
        low, high = self.schema.action_low, self.schema.action_high
        return (-1.0 if low is None else float(low)), (1.0 if high is None else float(high))

    def _propensities(self, part: Span, column: str) -> NDArray[np.float32]:
        values = self.encoder.numbers(part, column)
        most = np.inf if self.continuous else 1.0
        if (outside := (values <= 0) | (values > most)).any():
            row = int(np.argmax(outside))
            bound = "the probability of a taken action is above 0" + ("" if self.continuous else " and at most 1")
            refuse(part.where, f"row {part.row(row)} of {column!r} is {values[row]:g}, but {bound}.")
        return values

    def _masks(self, part: Span, column: str | tuple[str, ...], actions: NDArray[np.int32]) -> NDArray[np.bool_]:
        masks = self.encoder.masks(part, column, self.actions)
        forbidden = ~masks[np.arange(len(actions)), actions]
        if forbidden.any():
            row = int(np.argmax(forbidden))
            refuse(
                part.where,
                f"row {part.row(row)} took action {self._label(actions[row])}, which its mask ({_names(column)}) "
                f"forbids ({forbidden.sum():,} such rows in {len(actions):,}); mend the mask, or leave these rows out.",
            )
        return masks

    def _label(self, action: Any) -> str:
        labels = self.schema.categories.get(str(self.schema.action))
        return str(int(action)) if labels is None else repr(labels[int(action)])


def _behind_terminals(values: Mapping[str, Any], following: Mapping[str, Any]) -> dict[str, Any]:
    """What stands for s' behind a terminal, where nothing may use it: s, and every action."""
    found = {"next_observations": values["observations"]}
    if "masks" in values:
        found["next_masks"] = np.ones_like(values["masks"])
    return {name: column for name, column in found.items() if name not in following}


def _as_table(plan: _Plan, rows: UnpackedRows, discount: float) -> Transitions:
    if not 0 <= discount <= 1:
        raise UserError(f"The discount of the returns must be between 0 and 1, not {discount}.")
    out = rows.values
    space = ContinuousActions(plan.actions, *plan.bounds) if plan.continuous else DiscreteActions(plan.actions)
    names = [name for name in out.dtype.names if name != "reward_beyond"]
    return Transitions(
        **{name: out[name] for name in names},
        returns=monte_carlo_returns(out["rewards"], out["episodes"], discount, out["reward_beyond"]),
        action_space=space,
        returns_discount=discount,
        name=plain_name(plan.source.title),
        world=plan.schema.world,
        left_out=rows.left_out,
        filled=rows.filled,
        remarks=rows.remarks,
        schema=plan.schema,
        entries=plan.encoder.entries,
        parts=plan.encoder.parts,
    )


def _sizes(source: Source, schema: Schema) -> dict[str, int]:
    """How long the lists of each column are that holds some: of a fixed type, or of the first row that has one."""
    wanted = [name for name in schema.observation if name not in schema.pictures]
    if isinstance(schema.action, str):
        wanted.append(schema.action)
    found: dict[str, int] = {}
    for name in wanted:
        kind = source.types.field(name).type
        if hasattr(kind, "list_size") and kind.list_size > 0:
            found[name] = kind.list_size
        elif hasattr(kind, "value_field") and name not in schema.sizes:
            lists = (one for part in source.parts([name]) for one in part.array(name) if one.is_valid)
            first = next(lists, None)
            if first is not None:
                found[name] = len(first)
    return found


def _names(columns: str | tuple[str, ...]) -> str:
    return columns if isinstance(columns, str) else f"{columns[0]} … {columns[-1]}"


def _beside(source: Source) -> Path:
    first = source.files[0]
    return cache_beside(Path(source.name) if Path(source.name).is_dir() else first.parent)


def _stamp(file: Path) -> list[Any]:
    found = file.stat()
    return [str(file.resolve()), found.st_size, found.st_mtime_ns]


def _report(progress: Reporter, done: int, began: float) -> None:
    progress.at(done, per_second=done / max(time.monotonic() - began, 1e-9), note="")
