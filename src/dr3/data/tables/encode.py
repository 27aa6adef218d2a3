"""Columns as numbers: what is text or a category becomes columns of 0 and 1, and what is missing is filled or refused.

The same functions encode the rows that are learned from and, later, the rows that a policy is asked about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import refuse
from dr3.data.tables.schema import Schema, check_there
from dr3.data.tables.source import Source, Span, arrow, open_source
from dr3.envs.parts import Part, Parts
from dr3.errors import UserError

NUMBERS = "numbers"  # what all columns but the pictures are called together
MOST_SHOWN = 8  # of categories, in a sentence

Floats = NDArray[np.float32]


def encode_rows(schema: Schema, rows: Any) -> NDArray[Any]:
    """Observations of new rows, as the rows that were learned from became them: (n, size), or (n, bytes) with pictures.

    Args:
        schema: The schema of the table that was learned from (`data.schema`), without patterns.
        rows: A table in memory with the observation's columns, or a list of mappings.

    Raises:
        UserError: A column is missing, or a row holds what the schema does not know: a category, or nothing.
    """
    return _encoded(
        schema,
        rows,
        schema.observation,
        "observation",
        lambda encoder, part: encoder.observations(part, schema.observation),
    )


def encode_masks(schema: Schema, rows: Any) -> NDArray[np.bool_]:
    """Which actions new rows allow, by the schema's mask: (n, actions).

    Args:
        schema: The schema of the table that was learned from, without patterns.
        rows: A table in memory with the mask's columns, or a list of mappings.
    """
    mask = schema.mask
    labels = schema.categories.get(str(schema.action))
    count = len(mask) if isinstance(mask, tuple) else len(labels) if labels else schema.num_actions
    if mask is None or count is None:
        refuse("the schema", "it names no mask, or not how many actions there are ('num_actions').")
    columns = (mask,) if isinstance(mask, str) else mask
    return _encoded(schema, rows, columns, "mask", lambda encoder, part: encoder.masks(part, mask, count))


def _encoded(schema: Schema, rows: Any, columns: Sequence[str], role: str, encode: Any) -> NDArray[Any]:
    if isinstance(rows, list | tuple):
        if not all(isinstance(row, Mapping) for row in rows):
            raise UserError(
                "The rows must be a table in memory, or a list of mappings from a column's name to a value."
            )
        pyarrow = arrow("the rows")
        rows = _as_arrow(pyarrow, rows)
    source = open_source(rows)
    if source.rows() == 0:
        raise UserError("There are no rows to encode.")
    for name in columns:
        check_there(name, source.names, source.name, role)
    encoder = Encoder(schema, source, columns=[name for name in schema.observation if name in source.names])
    return np.concatenate([encode(encoder, part) for part in source.parts(columns)])


def _as_arrow(pyarrow: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    try:
        return pyarrow.Table.from_pylist(list(rows))
    except pyarrow.ArrowException as error:
        raise UserError(f"The rows hold values of different types in one column ({error}).") from None


class Encoder:
    """Makes the arrays of a schema's columns from parts of a table. Rows are named as the file counts them."""

    def __init__(self, schema: Schema, source: Source, columns: Sequence[str] | None = None) -> None:
        self.schema, self.source = schema, source
        self.pyarrow = arrow(source.name)
        self.types = self.pyarrow.types
        self.filled: dict[str, int] = {}  # rows in which a column was missing, as far as they were read
        self.widths = {}
        for name in schema.observation if columns is None else columns:
            self._check_kind(name)
            self.widths[name] = self._width(name)

    @property
    def size(self) -> int:
        """How many numbers an observation has, pictures apart."""
        return sum(self.widths.values())

    @property
    def parts(self) -> Parts | None:
        """Of observations with pictures: those, and all numbers as one vector."""
        if not self.schema.pictures:
            return None
        found = [Part(name, tuple(shape), "uint8") for name, shape in self.schema.pictures.items()]
        found += [Part(NUMBERS, (self.size,), "float32")] if self.size else []
        return Parts(tuple(sorted(found, key=lambda part: part.name)))

    @property
    def entries(self) -> tuple[str, ...]:
        """What each number of an observation is, in words."""
        found: list[str] = []
        for name in self.schema.observation:
            if name in self.schema.pictures:
                continue
            if name in self.schema.categories:
                found += [f"{name}={_word(one)}" for one in self.schema.categories[name]]
            elif self._is_list(name):
                found += [f"{name}[{number}]" for number in range(self.schema.sizes[name])]
            else:
                found.append(name)
            if self.schema.missing.get(name) == "flag":
                found.append(f"{name} is missing")
        return tuple(found)

    def observations(self, part: Span, columns: Sequence[str], only: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        """(n, size), or (n, bytes) with pictures.

        `columns` are those of the observation, or those of the next one; `only` says which rows count.
        """
        out = np.zeros((len(part.columns), self.size), np.float32)
        start = 0
        for name, column in zip(self.schema.observation, columns, strict=True):
            if name in self.schema.pictures:
                continue
            width = self.widths[name]
            self._encode(part, name, column, out[:, start : start + width], only)
            start += width
        if (parts := self.parts) is None:
            return out
        pairs = zip(self.schema.observation, columns, strict=True)
        pictures = {
            name: self._picture(part, name, column, only) for name, column in pairs if name in self.schema.pictures
        }
        return parts.pack({**pictures, **({NUMBERS: out} if self.size else {})}, rows=len(out))

    def _picture(self, part: Span, name: str, column: str, only: NDArray[np.bool_] | None) -> NDArray[np.uint8]:
        """The bytes of pictures: (n, height · width · channels); zeros in the rows that do not count."""
        array, shape = part.array(column), self.schema.pictures[name]
        size, gone = math.prod(shape), np.asarray(array.is_null())
        counts = np.ones(len(array), np.bool_) if only is None else only
        self.refuse_missing(part, column, gone & counts)
        lists = self._is_list_type(array.type)
        lengths = (
            self._lengths(array)
            if lists
            else np.asarray(self.pyarrow.compute.binary_length(array.cast(self.pyarrow.large_binary())).fill_null(0))
        )
        if (odd := counts & (lengths != size)).any():
            row = int(np.argmax(odd))
            sides = " x ".join(map(str, shape))
            refuse(
                part.where,
                f"row {part.row(row)} of {column!r} has {lengths[row]:,} bytes, but a picture of {sides} has {size:,}.",
            )
        out = np.zeros((len(array), size), np.uint8)
        chosen = array.filter(self.pyarrow.array(counts))
        if not lists:
            out[counts] = np.frombuffer(b"".join(chosen.to_pylist()), np.uint8).reshape(-1, size)
            return out
        try:
            inside = chosen.flatten().cast(self.pyarrow.uint8())
        except self.pyarrow.ArrowException:
            self.refuse_type(part.where, column, array.type, "a picture's numbers are bytes, from 0 to 255")
        if inside.null_count:
            refuse(part.where, f"{column!r} has a picture with an entry that is missing.")
        out[counts] = np.asarray(inside).reshape(-1, size)
        return out

    def numbers(self, part: Span, column: str, *, only: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        """One finite number for each row: (n,)."""
        array = part.array(column)
        if not self.is_number(array.type):
            self.refuse_type(part.where, column, array.type, "numbers are needed")
        values, gone = self._plain(array)
        missing, rule = gone if only is None else gone & only, self.schema.missing.get(column)
        if rule is None or isinstance(rule, str):
            self.refuse_missing(part, column, missing)
            rule = 0
        self._count_filled(column, missing)
        return self._finite(part, column, np.where(gone, rule, values))

    def _count_filled(self, column: str, missing: NDArray[np.bool_]) -> None:
        if missing.any():
            self.filled[column] = self.filled.get(column, 0) + int(missing.sum())

    def flags(self, part: Span, column: str) -> NDArray[np.bool_]:
        """True or false, or 1 and 0: (n,)."""
        values = self.numbers(part, column)
        if (odd := (values != 0) & (values != 1)).any():
            row = int(np.argmax(odd))
            refuse(part.where, f"row {part.row(row)} of {column!r} is {values[row]:g}, but it must be true or false.")
        return values.astype(np.bool_)

    def choices(self, part: Span, column: str, labels: str, only: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """The number of the action, or of the category, in each row: (n,). `labels` names whose categories they are."""
        if labels not in self.schema.categories:
            array = part.array(column)
            if not self.is_number(array.type) or (self.types.is_floating(array.type) and not self._all_whole(array)):
                kinds = f"an action is a whole number, or one that [categories] {column} = […] lists"
                vector = f"for a continuous one, write action = [{column!r}]"
                self.refuse_type(part.where, column, array.type, f"{kinds}; {vector}")
            return self.numbers(part, column, only=only).astype(np.int64)
        found = self._places(part.array(column), labels)
        gone = found < -1
        self.refuse_missing(part, column, gone if only is None else gone & only)
        unseen = (found == -1) if only is None else (found == -1) & only
        if unseen.any():
            self._refuse_unseen(part, column, labels, int(np.argmax(unseen)))
        return np.maximum(found, 0)

    def vectors(
        self, part: Span, columns: str | tuple[str, ...], only: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float32]:
        """Continuous actions: (n, size)."""
        if isinstance(columns, str):
            return self._list(part, columns, only, self.schema.sizes.get(columns))
        return np.stack([self.numbers(part, one, only=only) for one in columns], axis=1).astype(np.float32)

    def masks(
        self, part: Span, columns: str | tuple[str, ...], actions: int, only: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Which actions are allowed: (n, actions). A list has a boolean for each action, or the allowed actions."""
        if isinstance(columns, str):
            allowed = self._mask_lists(part, columns, actions, only)
        else:
            allowed = np.stack([self._mask_column(part, one, only) for one in columns], axis=1)
        nothing = ~allowed.any(axis=1) & (True if only is None else only)
        if nothing.any():
            name = columns if isinstance(columns, str) else f"{columns[0]} … {columns[-1]}"
            refuse(part.where, f"row {part.row(int(np.argmax(nothing)))} of {name!r} allows no action at all.")
        return allowed

    def _mask_lists(self, part: Span, columns: str, actions: int, only: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        array = part.array(columns)
        if not self._is_list_type(array.type):
            self.refuse_type(part.where, columns, array.type, "a mask is a column for each action, or one of lists")
        rows = len(array)
        gone = np.asarray(array.is_null())
        self.refuse_missing(part, columns, gone if only is None else gone & only)
        lengths = np.where(gone, 0, self._lengths(array))
        inside = array.drop_null().flatten()
        out = np.zeros((rows, actions), np.bool_)
        at = np.repeat(np.arange(rows), lengths)
        if (empty := np.asarray(inside.is_null())).any():
            row = part.row(int(at[int(np.argmax(empty))]))
            refuse(part.where, f"row {row} of {columns!r} has an entry that is missing.")
        if self.types.is_boolean(array.type.value_type):
            if (odd := (lengths != actions) & ~gone).any():
                row = int(np.argmax(odd))
                refuse(
                    part.where,
                    f"row {part.row(row)} of {columns!r} has {lengths[row]} entries, but there are {actions} actions.",
                )
            out[~gone] = np.asarray(inside).reshape(-1, actions)
            return out
        taken = self._list_actions(part, columns, inside, at)
        if (outside := (taken < 0) | (taken >= actions)).any():
            place = int(np.argmax(outside))
            refuse(
                part.where,
                f"row {part.row(at[place])} of {columns!r} allows action {taken[place]}, but the actions go from 0 to "
                f"{actions - 1}.",
            )
        if len(np.unique(at * actions + taken)) < len(taken):
            refuse(
                part.where,
                f"{columns!r} lists an action twice in one row; if it holds 0 and 1 for each action, store booleans.",
            )
        out[at, taken] = True
        return out

    def _list_actions(self, part: Span, column: str, inside: Any, at: NDArray[np.intp]) -> NDArray[np.int64]:
        action = str(self.schema.action)
        if action in self.schema.categories:
            taken = self._places(inside, action)
            if (odd := taken < 0).any():
                place = int(np.argmax(odd))
                row = int(at[place])
                refuse(
                    part.where,
                    f"row {part.row(row)} of {column!r} allows {inside[place].as_py()!r}, which is none of the actions "
                    f"in the schema's categories of {action!r}.",
                )
            return taken
        if not self.types.is_integer(inside.type):
            self.refuse_type(part.where, column, inside.type, "a mask's lists hold booleans, or the allowed actions")
        return np.asarray(inside).astype(np.int64)

    def _mask_column(self, part: Span, column: str, only: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        if only is None:
            return self.flags(part, column)
        values = self.numbers(part, column, only=only)
        if (odd := only & (values != 0) & (values != 1)).any():
            row = int(np.argmax(odd))
            refuse(part.where, f"row {part.row(row)} of {column!r} is {values[row]:g}, but it must be true or false.")
        return values.astype(np.bool_)

    def _encode(self, part: Span, name: str, column: str, out: Floats, only: NDArray[np.bool_] | None) -> None:
        rule = self.schema.missing.get(name)
        array = part.array(column)
        if name in self.schema.categories:
            places = self._places(array, name)
            gone = places < -1
            unseen = (places == -1) if only is None else (places == -1) & only
            if unseen.any():
                self._refuse_unseen(part, column, name, int(np.argmax(unseen)))
            known = np.flatnonzero(places >= 0)
            out[known, places[known]] = 1
        elif self._is_list(name):
            gone = np.asarray(array.is_null())
            wanted = ~gone if only is None else ~gone & only
            size = self.schema.sizes[name]
            out[:, :size] = self._list(part, column, wanted, size)
        else:
            values, gone = self._plain(array)
            filled = rule if rule is not None and not isinstance(rule, str) else 0
            values = np.where(gone if only is None else gone | ~only, filled, values)
            out[:, 0] = self._finite(part, column, values)
        missing = gone if only is None else gone & only
        if rule is None or rule == "drop":  # rows to be dropped are no longer here
            self.refuse_missing(part, column, missing)
        if column == name:
            self._count_filled(name, missing)
        if rule == "flag":
            out[:, -1] = missing

    def _plain(self, array: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Numbers with NaN where one is missing, and where that is."""
        kind = array.type
        if self.types.is_dictionary(kind):
            array = array.dictionary_decode()
            kind = array.type
        if not self.types.is_floating(kind) or self.types.is_float16(kind):
            array = array.cast(self.pyarrow.float64())
        values = array.to_numpy(zero_copy_only=False)
        return values, np.isnan(values)

    def _finite(self, part: Span, column: str, values: NDArray[Any]) -> Floats:
        with np.errstate(over="ignore"):
            single = values.astype(np.float32)
        if (broken := ~np.isfinite(single)).any():
            row = int(np.argmax(broken))
            refuse(
                part.where,
                f"row {part.row(row)} of {column!r} is {values[row]}, but every number must be finite (as a float32).",
            )
        return single

    def _list(self, part: Span, column: str, only: NDArray[np.bool_] | None, size: int | None) -> Floats:
        """Lists of one length: (n, size); zeros in the rows that do not count."""
        array = part.array(column)
        gone = np.asarray(array.is_null())
        lengths = np.zeros(len(array), np.int64) if self.types.is_null(array.type) else self._lengths(array)
        counts = np.ones(len(array), np.bool_) if only is None else only
        self.refuse_missing(part, column, gone & counts)
        if self.types.is_null(array.type):  # no row holds a list
            return np.zeros((len(array), size or 0), np.float32)
        if (odd := counts & (lengths != size)).any():
            row = int(np.argmax(odd))
            refuse(part.where, f"row {part.row(row)} of {column!r} has {lengths[row]} entries, but the others {size}.")
        out = np.zeros((len(array), size or 0), np.float32)
        chosen = array.filter(self.pyarrow.array(counts)) if not counts.all() else array
        inside, gone_inside = self._plain(chosen.flatten())
        if gone_inside.any():
            row = int(np.flatnonzero(counts)[int(np.argmax(gone_inside)) // (size or 1)])
            refuse(part.where, f"row {part.row(row)} of {column!r} has an entry that is missing.")
        with np.errstate(over="ignore"):
            out[counts] = inside.astype(np.float32).reshape(-1, size or 0)
        if (broken := ~np.isfinite(out).all(axis=1)).any():
            row = part.row(int(np.argmax(broken)))
            refuse(part.where, f"row {row} of {column!r} holds a number that is not finite.")
        return out

    def _lengths(self, array: Any) -> NDArray[np.int64]:
        if self.types.is_fixed_size_list(array.type):
            return np.full(len(array), array.type.list_size)
        return np.asarray(self.pyarrow.compute.list_value_length(array).fill_null(0)).astype(np.int64)

    def _places(self, array: Any, name: str) -> NDArray[np.int64]:
        """The category's number; -1 for one that is not listed, -2 where it is missing."""
        labels = self.schema.categories[name]
        if self.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        kind = array.type
        if self.types.is_null(kind):
            return np.full(len(array), -2)
        try:
            known = self.pyarrow.array(list(labels)).cast(kind)
        except self.pyarrow.ArrowException:
            self.refuse_type(self.source.name, name, kind, f"the schema's categories are {_listed(labels)}")
        found = self.pyarrow.compute.index_in(array, value_set=known, skip_nulls=True)
        places = np.asarray(found.fill_null(-1)).astype(np.int64)
        places[self.missing(array)] = -2
        return places

    def _width(self, name: str) -> int:
        if name in self.schema.pictures:
            return 0
        if name in self.schema.categories:
            width = len(self.schema.categories[name])
        elif self._is_list(name):
            if name not in self.schema.sizes:
                refuse(self.source.name, f"{name!r} holds lists, and no row says how long they are.")
            width = self.schema.sizes[name]
        else:
            width = 1
        return width + (self.schema.missing.get(name) == "flag")

    def _is_list(self, name: str) -> bool:
        kind = self.source.types.field(name).type
        return self._is_list_type(kind) or (self.types.is_null(kind) and name in self.schema.sizes)

    def _is_list_type(self, kind: Any) -> bool:
        return self.types.is_list(kind) or self.types.is_large_list(kind) or self.types.is_fixed_size_list(kind)

    def is_number(self, kind: Any) -> bool:
        if self.types.is_dictionary(kind):
            kind = kind.value_type
        types = self.types
        # A column in which every value is missing has a type of its own.
        tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
        return any(test(kind) for test in tests)

    def _all_whole(self, array: Any) -> bool:
        values = array.drop_null().to_numpy(zero_copy_only=False)
        return bool((values == np.floor(values)).all())

    def _check_kind(self, name: str) -> None:
        """An observation's column holds numbers, lists of numbers, or categories that the schema lists."""
        kind = self.source.types.field(name).type
        if name in self.schema.pictures:
            types = self.types
            tests = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, self._is_list_type)
            if not any(test(kind) for test in tests):
                self.refuse_type(self.source.name, name, kind, "a picture is a column of bytes, or of lists of them")
            return
        if name in self.schema.categories or self.is_number(kind):
            return
        if self._is_list_type(kind) and self.is_number(kind.value_type):
            return
        if self.types.is_string(kind) or self.types.is_large_string(kind) or self.types.is_dictionary(kind):
            refuse(
                self.source.name,
                f"{name!r} holds text; list its categories in the schema, [categories] {name} = {self._seen(name)} "
                "(`dr3 data schema` writes them), or leave the column out.",
            )
        if self.types.is_temporal(kind):
            self.refuse_type(
                self.source.name, name, kind, "turn dates into numbers that mean something, or leave it out"
            )
        if self.types.is_binary(kind) or self.types.is_large_binary(kind) or self.types.is_fixed_size_binary(kind):
            self.refuse_type(
                self.source.name,
                name,
                kind,
                f"say in the schema how large the pictures are: [pictures] {name} = [48, 48, 3]",
            )
        self.refuse_type(self.source.name, name, kind, "only numbers, lists of numbers and categories can be read")

    def _seen(self, name: str) -> str:
        """The categories of the first rows, to copy from a refusal."""
        part = next(iter(self.source.parts([name])), None)
        if part is None:
            return "[…]"
        values = part.array(name)
        values = values.dictionary_decode() if self.types.is_dictionary(values.type) else values
        return _listed(sorted(one for one in values.unique().to_pylist() if one is not None))

    def refuse_missing(self, part: Span, column: str, gone: NDArray[np.bool_]) -> None:
        if not gone.any():
            return
        row = part.row(int(np.argmax(gone)))
        count = sum(int(self.missing(each.array(column)).sum()) for each in self.source.parts([column]))
        rules = f"say what to do in the schema: [missing] {column} = {self.schema.rules_for(column)}"
        refuse(part.where, f"{column!r} is missing in {count:,} rows (the first is row {row}); {rules}.")

    def missing(self, array: Any) -> NDArray[np.bool_]:
        """Where nothing was logged; NaN counts as that too."""
        array = array.dictionary_decode() if self.types.is_dictionary(array.type) else array
        return np.asarray(array.is_null(nan_is_null=self.types.is_floating(array.type)))

    def _refuse_unseen(self, part: Span, column: str, labels: str, row: int) -> NoReturn:
        value = part.array(column)[row].as_py()
        refuse(
            part.where,
            f"row {part.row(row)} of {column!r} is {value!r}, which is not among the schema's categories "
            f"{_listed(self.schema.categories[labels])}.",
        )

    def refuse_type(self, where: str, column: str, kind: Any, why: str) -> NoReturn:
        refuse(where, f"{column!r} holds values of type {kind}, but {why}.")


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(repr(one) for one in values[:MOST_SHOWN])
    return f"[{shown}{', …' if len(values) > MOST_SHOWN else ''}]"
