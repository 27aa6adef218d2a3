"""Writing steps as a DQN replay."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.dqn_replay_files import ROWS_AT_A_TIME, STACK, STORED, file_of
from dr3.data.frames import Frames
from dr3.files import written_whole


def write_dqn_replay(
    folder: str | os.PathLike[str],
    *,
    frames: NDArray[np.uint8] | Frames,
    actions: NDArray[np.integer],
    rewards: NDArray[np.floating],
    terminals: NDArray[np.bool_],
    rows_per_file: int = 1_000_000,
    stack: int = STACK,
) -> None:
    """Write steps in the order of time: frames (T, height, width), the others (T,). Rewards are written as they are.

    An episode is what lies between two terminals; the format knows no time-outs. Before each go stack - 1 rows of
    zeros. The last file is filled up with zeros, and its add_count says so.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    begins = np.append(True, np.asarray(terminals[:-1], np.bool_))
    # Where each step goes: behind the padding of all episodes up to its own.
    place = np.arange(len(actions)) + (stack - 1) * np.cumsum(begins)
    columns = {"observation": frames, "action": actions, "reward": rewards, "terminal": terminals}
    for number in range(-(-int(place[-1] + 1) // rows_per_file)):
        first = number * rows_per_file
        for column, values in columns.items():
            shape = (rows_per_file, *values.shape[1:])
            _write(file_of(folder, column, number), shape, STORED[column], _padded(values, place, first, rows_per_file))
        added = min(first + rows_per_file, int(place[-1]) + 1)
        # From the row before the cursor to the last one whose stack reaches across it.
        for column, value in {
            "add_count": np.array(added),
            "invalid_range": (added - 1 + np.arange(stack + 1)) % rows_per_file,
        }.items():
            _write(file_of(folder, column, number), value.shape, value.dtype, [value])


def _padded(values: Any, place: NDArray[np.intp], first: int, rows: int) -> Iterator[NDArray[Any]]:
    """Rows `first` to `first + rows`, some at a time (a million frames are 7 GB), with zeros where there is no step."""
    for begin in range(first, first + rows, ROWS_AT_A_TIME):
        end = min(begin + ROWS_AT_A_TIME, first + rows)
        steps = slice(*np.searchsorted(place, [begin, end]))
        some = values[steps]
        out = np.zeros((end - begin, *values.shape[1:]), some.dtype)
        out[place[steps] - begin] = some
        yield out


def _write(path: Path, shape: tuple[int, ...], dtype: Any, blocks: Iterable[NDArray[Any]]) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    with written_whole(path) as unfinished, gzip.open(unfinished, "wb", compresslevel=6) as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for block in blocks:
            stream.write(block.astype(dtype).tobytes())
