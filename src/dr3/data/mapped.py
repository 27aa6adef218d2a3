"""Arrays that lie in a file and are mapped into memory.

Mapped pages count as the process's memory until they are let go of, so whoever has read many of them calls `let_go`;
they come back from the file when they are read again.
"""

from __future__ import annotations

import mmap
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 2048  # rows gathered before their pages are let go: the kernel maps 16 pages around each


def is_mapped(array: Any) -> bool:
    """Whether an array is a part of a file that is mapped into memory."""
    return isinstance(array, np.memmap) and getattr(array, "_mmap", None) is not None


def let_go(array: Any, first: int = 0, last: int | None = None) -> None:
    """Give back the memory of pages that were read from (or written to) a mapped file; the values stay in the file.

    Args:
        array: Mapped, or not: then nothing is done.
        first: The first row whose page goes.
        last: The last one; None for all behind the first.
    """
    mapping = getattr(array, "_mmap", None)
    if mapping is None or not hasattr(mmap, "MADV_DONTNEED"):
        return
    row = array.strides[0] if array.ndim else 0
    if last is None or row * len(array) != len(mapping):  # a part of the file: its rows are not counted from the start
        mapping.madvise(mmap.MADV_DONTNEED)
        return
    start = first * row // mmap.PAGESIZE * mmap.PAGESIZE
    mapping.madvise(mmap.MADV_DONTNEED, start, min((last + 1) * row, len(mapping)) - start)


def expect_random(array: Any) -> None:
    """Say that rows will be drawn at random: what lies around one is not read ahead."""
    if is_mapped(array) and hasattr(mmap, "MADV_RANDOM"):
        array._mmap.madvise(mmap.MADV_RANDOM)


@contextmanager
def read_through(array: Any) -> Generator[None]:
    """A column is read from one end to the other in here: what lies around a row is read ahead, as it is not elsewhere.

    Page by page a file that the memory does not hold would take the disk's time for a page, some million times.
    """
    if is_mapped(array) and hasattr(mmap, "MADV_NORMAL"):
        array._mmap.madvise(mmap.MADV_NORMAL)
    try:
        yield
    finally:
        expect_random(array)


def gather(columns: Mapping[str, NDArray[Any]], index: NDArray[np.integer]) -> dict[str, NDArray[Any]]:
    """The same rows of several columns. Of those in a file, only a few rows' pages are in memory at a time."""
    mapped = next((column for column in columns.values() if is_mapped(column)), None)
    if mapped is None:
        return {name: column[index] for name, column in columns.items()}
    index = np.flatnonzero(index) if index.dtype == np.bool_ else np.asarray(index)
    out = {name: np.empty((len(index), *column.shape[1:]), column.dtype) for name, column in columns.items()}
    order = np.argsort(index)  # from the file's beginning to its end: half the time of random places
    for start in range(0, len(index), AT_ONCE):
        places = order[start : start + AT_ONCE]
        rows = index[places]
        for name, column in columns.items():
            out[name][places] = column[rows]
        let_go(mapped, int(rows[0]), int(rows[-1]))
    return out
