"""Observations whose frames are stored once, however many rows look at them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.mapped import let_go, read_through

CHUNK = 8192  # rows made into plain arrays at a time, where a whole column is looked at


@dataclass(frozen=True, eq=False)
class Frames:
    """A column of N observations that point into a store of M frames; it is indexed like the array it stands for.

    Row i is the frame number `newest[i]`. With a `stack`, it is that frame behind the stack - 1 frames before it in the
    store, oldest first, on a new last axis. With `bits`, frames are booleans of that shape, packed eight to a byte.
    The arrays may also be JAX's: then what indexing gives is JAX's too, and rows are gathered where they are used.
    """

    stored: Any  # (M, *frame shape), or (M, bytes) uint8
    newest: Any  # (N,) int32
    bits: tuple[int, ...] | None = None
    stack: int | None = None

    def __len__(self) -> int:
        return len(self.newest)

    @property
    def shape(self) -> tuple[int, ...]:
        frame = self.stored.shape[1:] if self.bits is None else self.bits
        return (len(self), *frame, *(() if self.stack is None else (self.stack,)))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def frame_bytes(self) -> int:
        """Of one frame as it is stored."""
        return math.prod(self.stored.shape[1:]) * self.stored.dtype.itemsize

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.bool_) if self.bits is not None else np.dtype(self.stored.dtype)

    def __getitem__(self, index: Any) -> Any:
        """Observations as a plain array."""
        library = self.stored.__array_namespace__()
        frames = self.stored[self._numbers(self.newest[index])]
        if self.bits is not None:
            flat = library.unpackbits(frames, axis=-1, count=math.prod(self.bits))
            frames = flat.astype(bool).reshape(*flat.shape[:-1], *self.bits)
        if self.stack is None:
            return frames
        return library.moveaxis(frames, -len(self.shape) + 1, -1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype)

    def rows(self, index: Any) -> Frames:
        """The column restricted to some rows, over the same store."""
        return dataclasses.replace(self, newest=self.newest[index])

    def _numbers(self, newest: Any) -> Any:
        return newest if self.stack is None else newest[..., None] + np.arange(1 - self.stack, 1)


Observations = NDArray[np.generic] | Frames


def used_frames(*columns: Frames) -> NDArray[np.intp]:
    """The numbers of all frames that columns over one store look at, in order."""
    # Marked, not sorted: of many millions of rows the numbers alone would fill the memory several times.
    used = np.zeros(len(columns[0].stored), np.bool_)
    for column in columns:
        for back in range(column.stack or 1):
            used[column.newest - back] = True
    return np.flatnonzero(used)


def compact(*columns: Frames) -> list[Frames]:
    """The same columns, all on one store that holds only the frames they use (out of a file, only these are read)."""
    stored = columns[0].stored
    assert all(column.stored is stored for column in columns), "columns that share frames share the store itself"
    used = used_frames(*columns)
    # The frames of a stack are used together, so those that were neighbours still are.
    kept = stored[used]
    return [
        dataclasses.replace(column, stored=kept, newest=np.searchsorted(used, column.newest).astype(np.int32))
        for column in columns
    ]


def same_rows(
    one: Observations, rows: NDArray[np.intp], other: Observations, others: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Whether row `rows[i]` of one column is row `others[i]` of the other: (n,), some rows at a time."""
    same = np.ones(len(rows), np.bool_)
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        left, right = one[rows[part]], other[others[part]]
        same[part] = (left == right).all(axis=tuple(range(1, left.ndim)))
    return same


def chunks(column: Any) -> Iterator[NDArray[Any]]:
    """The rows as plain arrays, some at a time."""
    with read_through(column):
        for start in range(0, len(column), CHUNK):
            yield column[start : start + CHUNK]
            let_go(column)
