"""The files of the DQN-replay format: their names, what is checked in them, and how they are written.

For each checkpoint k = 0, 1, … there are six gzipped `.npy` arrays: `$store$_observation_ckpt.k.gz` (rows, 84, 84)
uint8, likewise action int32, reward float32 and terminal uint8, each (rows,); `add_count_ckpt.k.gz` () and
`invalid_range_ckpt.k.gz` (5,). A checkpoint is a circular buffer as it stood after `add_count` rows had been added.
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import os
import re
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import refuse
from dr3.data.frames import Frames
from dr3.data.gate import array_header, opened, read_array
from dr3.files import written_whole

STACK = 4
STORED: dict[str, Any] = {"observation": np.uint8, "action": np.int32, "reward": np.float32, "terminal": np.uint8}
DAMAGED = "the file is damaged or was cut short; copy it again."
# Also what comes of a header that claims more than the memory holds.
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, MemoryError, OverflowError)
ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Checkpoint:
    """The rows of one checkpoint that were added since the one before: all but those the cursor had yet to reach."""

    number: int
    first: int  # how many rows had been added before its own
    actions: NDArray[np.int32]
    rewards: NDArray[np.float32]
    terminals: NDArray[np.uint8]
    capacity: int  # rows of its files, with those that are not its own

    def __len__(self) -> int:
        return len(self.actions)

    def beginning(self, count: int) -> Checkpoint:
        columns = {name: getattr(self, name)[:count] for name in ("actions", "rewards", "terminals")}
        return dataclasses.replace(self, **columns)


def file_of(folder: Path, column: str, number: int) -> Path:
    return folder / f"{'$store$_' if column in STORED else ''}{column}_ckpt.{number}.gz"


def checkpoint_numbers(folder: Path, *, from_the_start: bool = False) -> list[int]:
    """Which checkpoints there are, in order; one that is missing between others (or before them) is refused."""
    found = (re.fullmatch(r"\$store\$_action_ckpt\.(\d+)\.gz", file.name) for file in folder.iterdir())
    numbers = sorted(int(match[1]) for match in found if match)
    if not numbers:
        refuse(str(folder), "there are no files of a DQN replay ($store$_action_ckpt.0.gz, …) in it.")
    for number in range(0 if from_the_start else numbers[0], numbers[-1]):
        if number not in numbers:
            refuse(str(file_of(folder, "action", number)), "there is no such file.")
    return numbers


def read_checkpoint(folder: Path, number: int) -> Checkpoint:
    """All but the frames."""
    actions = _read(folder, "action", number)
    capacity = len(actions)
    rewards, terminals = (_read(folder, column, number, rows=capacity) for column in ("reward", "terminal"))
    if terminals.max() > 1:
        row = int(np.argmax(terminals > 1))
        refuse(str(file_of(folder, "terminal", number)), f"row {row} is {terminals[row]}, but it must be 0 or 1.")
    added = _added(folder, number)
    _check_invalid_range(folder, number)
    own = added % capacity or capacity
    broken = ~np.isfinite(rewards[:own])
    if broken.any():
        row = int(np.argmax(broken))
        refuse(str(file_of(folder, "reward", number)), f"row {row} is {rewards[row]}, but a reward must be finite.")
    return Checkpoint(number, added - own, actions[:own], rewards[:own], terminals[:own], capacity)


def check_in_time(folder: Path, files: list[Checkpoint]) -> None:
    """No row is in two checkpoints, and none comes before those of the checkpoint before.

    A count may jump ahead: what was overwritten between two checkpoints is not there (of the public files, one row).
    """
    for before, file in itertools.pairwise(files):
        if file.first < before.first + len(before):
            refuse(
                str(file_of(folder, "add_count", file.number)),
                f"its rows begin at number {file.first}, but those of checkpoint {before.number} go on to "
                f"{before.first + len(before)}; these are not the files of one replay in order.",
            )


@contextmanager
def unpacking(path: Path) -> Generator[gzip.GzipFile]:
    """What a gzipped file holds, as a stream."""
    with opened(path) as file, gzip.GzipFile(fileobj=file) as stream:
        yield stream


def _read(folder: Path, column: str, number: int, rows: int | None = None) -> NDArray[Any]:
    path = file_of(folder, column, number)
    with unpacking(path) as stream:
        try:
            values = read_array(stream, str(path), stored=path.stat().st_size)
        except DAMAGE:
            refuse(str(path), DAMAGED)
        check_end(path, stream)
    if column in STORED:
        _check(path, column, values.dtype, values.shape, rows)
    return values


def _added(folder: Path, number: int) -> int:
    count = _read(folder, "add_count", number)
    if count.size != 1 or count.dtype.kind not in "iu" or count < 1:
        refuse(str(file_of(folder, "add_count", number)), "it must hold one whole number above 0.")
    return int(count.reshape(-1)[0])


def _check_invalid_range(folder: Path, number: int) -> None:
    """It says again where the cursor was, which add_count tells; but a folder without it is not whole."""
    rows = _read(folder, "invalid_range", number)
    # As many as the frames of a stack and the steps up to s', which an n-step agent has more of.
    if rows.ndim != 1 or len(rows) < 2 or rows.dtype.kind not in "iu":
        refuse(
            str(file_of(folder, "invalid_range", number)),
            f"it holds {rows.dtype} of shape {rows.shape}, but it must be a short list of rows ({STACK + 1} integers).",
        )


def check_end(path: Path, stream: gzip.GzipFile) -> None:
    """Nothing follows the array. Only on looking for more does gzip compare the checksum of what was read."""
    try:
        more = stream.read(1)
    except DAMAGE:
        refuse(str(path), DAMAGED)
    if more:
        refuse(str(path), "it goes on behind its array; copy it again.")


def frame_header(path: Path, stream: gzip.GzipFile, rows: int) -> tuple[int, ...]:
    try:
        shape, column_major, dtype, _ = array_header(stream, str(path))
    except DAMAGE:
        refuse(str(path), DAMAGED)
    if column_major:
        refuse(str(path), "its array is stored by columns; write it again in C order.")
    _check(path, "observation", dtype, shape, rows)
    return shape


def _check(path: Path, column: str, dtype: np.dtype, shape: tuple[int, ...], rows: int | None) -> None:
    if dtype != STORED[column]:
        refuse(str(path), f"it holds values of type {dtype}, but {np.dtype(STORED[column])} is needed.")
    if len(shape) != (3 if column == "observation" else 1) or 0 in shape:
        refuse(str(path), f"it has shape {shape}, which is not that of a column of {column}s.")
    if rows is not None and shape[0] != rows:
        refuse(str(path), f"it has {shape[0]} rows, but the actions of that checkpoint have {rows}.")


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

    Args:
        folder: The folder.
        frames: uint8, (T, height, width).
        actions: (T,).
        rewards: (T,), written as they are.
        terminals: (T,), true where the game ended.
        rows_per_file: How many steps each file holds.
        stack: How many frames an observation has.
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
