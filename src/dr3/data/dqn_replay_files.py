"""The files of the DQN-replay format: names, checks, the cache of frames, and writing them.

For each checkpoint k = 0, 1, … there are six gzipped `.npy` arrays: `$store$_observation_ckpt.k.gz` (rows, 84, 84)
uint8, likewise action int32, reward float32 and terminal uint8, each (rows,); `add_count_ckpt.k.gz` () and
`invalid_range_ckpt.k.gz` (5,). A checkpoint is a circular buffer as it stood after `add_count` rows had been added.
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import refuse
from dr3.data.frames import Frames

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
            refuse(str(file_of(folder, "action", number)), "this file is missing.")
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


def mapped_frames(folder: Path, files: list[Checkpoint], taken: list[Checkpoint], cache: Path) -> NDArray[np.uint8]:
    """The frames of the rows that are taken of the files, one file behind the other, mapped from the cache; unpacked
    into it the first time.
    """
    sources = [file_of(folder, "observation", file.number) for file in files]
    for source in sources:
        if not source.exists():
            refuse(str(source), "this file is missing.")
    seen = [
        [source.name, source.stat().st_size, source.stat().st_mtime_ns, len(some)]
        for source, some in zip(sources, taken, strict=True)
    ]
    target = cache / f"frames-{zlib.crc32(json.dumps(seen).encode()):08x}.npy"
    if not target.exists():
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            refuse(str(cache), f"the cache of frames cannot be made here ({error.strerror}); name another folder.")
        unfinished = target.with_suffix(f".{os.getpid()}.unfinished")
        try:
            _unpack(sources, files, [len(some) for some in taken], unfinished)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    return np.load(target, mmap_mode="r")


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
    for number in range(-(-int(place[-1] + 1) // rows_per_file)):
        first = number * rows_per_file
        steps = slice(*np.searchsorted(place, [first, first + rows_per_file]))
        rows = place[steps] - first
        columns = {"observation": frames, "action": actions, "reward": rewards, "terminal": terminals}
        for column, values in columns.items():
            out = np.zeros((rows_per_file, *values.shape[1:]), STORED[column])
            out[rows] = values[steps]
            _write(file_of(folder, column, number), out)
        added = min(first + rows_per_file, int(place[-1]) + 1)
        # From the row before the cursor to the last one whose stack reaches across it.
        _write(file_of(folder, "add_count", number), np.array(added))
        _write(file_of(folder, "invalid_range", number), (added - 1 + np.arange(stack + 1)) % rows_per_file)


def _write(path: Path, values: NDArray[Any]) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with gzip.open(unfinished, "wb", compresslevel=6) as stream:
            np.lib.format.write_array(stream, values, allow_pickle=False)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _read(folder: Path, column: str, number: int, rows: int | None = None) -> NDArray[Any]:
    path = file_of(folder, column, number)
    if not path.exists():
        refuse(str(path), "this file is missing.")
    with gzip.open(path, "rb") as stream:
        try:
            values = np.lib.format.read_array(stream, allow_pickle=False)
        except DAMAGE:
            refuse(str(path), DAMAGED)
        except ValueError as error:
            refuse(str(path), _unreadable(error))
        _check_end(path, stream)
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


def _unpack(sources: list[Path], files: list[Checkpoint], taken: list[int], target: Path) -> None:
    out, at, rows = None, 0, sum(taken)
    for path, file, count in zip(sources, files, taken, strict=True):
        with gzip.open(path, "rb") as stream:
            shape = _frame_header(path, stream, file.capacity)
            if out is None:
                out = np.lib.format.open_memmap(target, "w+", np.uint8, (rows, *shape[1:]))
            elif out.shape[1:] != shape[1:]:
                refuse(str(path), f"its frames are {shape[1:]}, but those of the first file are {out.shape[1:]}.")
            for first in range(0, count, ROWS_AT_A_TIME):
                some = min(ROWS_AT_A_TIME, count - first)
                out[at : at + some] = _frames(path, stream, (some, *shape[1:]))
                at += some
            # The checksum is behind the last byte. A part of the rows comes without it: to unpack all of a file for the
            # sake of its first hundredth would take as long as the whole replay.
            if count == len(file):
                for first in range(count, file.capacity, ROWS_AT_A_TIME):
                    _frames(path, stream, (min(ROWS_AT_A_TIME, file.capacity - first), *shape[1:]))
                _check_end(path, stream)
    assert out is not None
    out.flush()


def _check_end(path: Path, stream: gzip.GzipFile) -> None:
    """Nothing follows the array. Only on looking for more does gzip compare the checksum of what was read."""
    try:
        more = stream.read(1)
    except DAMAGE:
        refuse(str(path), DAMAGED)
    if more:
        refuse(str(path), "it goes on behind its array; copy it again.")


def _frame_header(path: Path, stream: gzip.GzipFile, rows: int) -> tuple[int, ...]:
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, column_major, dtype = read(stream)
    except DAMAGE:
        refuse(str(path), DAMAGED)
    except ValueError as error:
        refuse(str(path), _unreadable(error))
    if column_major:
        refuse(str(path), "its array is stored by columns; write it again in C order.")
    _check(path, "observation", dtype, shape, rows)
    return shape


def _frames(path: Path, stream: gzip.GzipFile, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    size = int(np.prod(shape))
    try:
        block = stream.read(size)
    except DAMAGE:
        block = b""
    if len(block) < size:
        refuse(str(path), DAMAGED)
    return np.frombuffer(block, np.uint8).reshape(shape)


def _check(path: Path, column: str, dtype: np.dtype, shape: tuple[int, ...], rows: int | None) -> None:
    if dtype != STORED[column]:
        refuse(str(path), f"it holds values of type {dtype}, but {np.dtype(STORED[column])} is needed.")
    if len(shape) != (3 if column == "observation" else 1) or 0 in shape:
        refuse(str(path), f"it has shape {shape}, which is not that of a column of {column}s.")
    if rows is not None and shape[0] != rows:
        refuse(str(path), f"it has {shape[0]} rows, but the actions of that checkpoint have {rows}.")


def _unreadable(error: ValueError) -> str:
    if "allow_pickle" in str(error):
        return "it holds pickled Python objects, which are never loaded."
    return "it is not a whole gzipped .npy array; copy it again."
