"""Logged data in numpy's own archive: one named array for each column."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.assemble import OPTIONAL, REQUIRED, assemble, check_names
from dr3.data.checks import Values, check_fits_in_32_bits, refuse
from dr3.data.columns import columns_of, first_bytes
from dr3.data.frames import Frames, compact
from dr3.data.transitions import Transitions
from dr3.files import written_whole

# Instead of observations and next_observations: each frame once, and which of them a row looks at.
FRAME_POINTERS = {"observations": "observation_frames", "next_observations": "next_observation_frames"}
FRAMES = ("frames", *FRAME_POINTERS.values())
# `frame_shape`: frames are booleans of that shape, packed eight to a byte. `frame_stack`: an observation is so many
# frames in a row, up to the one that is pointed at.
FRAME_OPTIONS = ("frame_shape", "frame_stack")
# What zipfile raises for bytes that are wrong in one place or another (an unknown compression, a cipher, …).
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)


def read_npz(path: str | os.PathLike[str], *, discount: float = 0.99) -> Transitions:
    """Read a table; which arrays the file needs, and what is derived without the others, is said in `assemble`.

    Pickled objects are never loaded: they could run any program.
    """
    path = Path(path)
    return assemble(_arrays(path), source=str(path), name=path.stem, discount=discount)


def write_npz(path: str | os.PathLike[str], transitions: Transitions) -> None:
    """Write a table with all its columns, compressed, so that reading it gives the same fingerprint.

    The file appears under its name only when it is whole: it is written beside it first, and then renamed.
    """
    arrays: dict[str, Any] = {**_observation_arrays(transitions), **columns_of(transitions)}
    with written_whole(Path(path)) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _observation_arrays(transitions: Transitions) -> dict[str, Any]:
    now, following = transitions.observations, transitions.next_observations
    if not (isinstance(now, Frames) and isinstance(following, Frames)):
        return {"observations": now, "next_observations": following}
    columns = dict(zip(FRAME_POINTERS.values(), compact(now, following), strict=True))
    arrays: dict[str, Any] = {"frames": columns["observation_frames"].stored}
    # As steps: they are nearly all 1, and so all but vanish in the archive.
    arrays |= {name: np.diff(column.newest, prepend=np.int32(0)) for name, column in columns.items()}
    if now.bits is not None:
        arrays["frame_shape"] = np.array(now.bits, np.int64)
    if now.stack is not None:
        arrays["frame_stack"] = np.int64(now.stack)
    return arrays


def _frames(archive: np.lib.npyio.NpzFile, source: str) -> dict[str, Frames]:
    """Both columns of observations over one store of frames, checked: a row must not point outside it."""
    for field in FRAMES:
        if field not in archive.files:
            refuse(source, f"'{field}' is missing; a file with frames needs {', '.join(FRAMES)}.")
    stored = _array(archive, "frames", source)
    if stored.dtype.kind not in "bui" or stored.ndim < 2 or len(stored) == 0:
        refuse(source, f"'frames' has shape {stored.shape} and type {stored.dtype}, but it holds images of integers.")
    check_fits_in_32_bits(source, "frames", stored)
    bits, stack = None, None
    if "frame_shape" in archive.files:
        bits = tuple(int(size) for size in _integers(archive, "frame_shape", source))
        if min(bits, default=0) < 1 or stored.dtype != np.uint8 or stored.shape[1:] != (-(-math.prod(bits) // 8),):
            refuse(source, f"'frames' has shape {stored.shape}, which is not that of packed booleans {bits}.")
    if "frame_stack" in archive.files:
        given = _integers(archive, "frame_stack", source)
        stack = int(given[0])
        if len(given) != 1 or stack < 1:
            refuse(source, f"'frame_stack' is {given.tolist()}, but it must be one whole number above 0.")
    columns = {}
    for column, field in FRAME_POINTERS.items():
        newest = np.cumsum(_integers(archive, field, source))
        outside = (newest < (stack or 1) - 1) | (newest >= len(stored))
        if outside.any():
            row = int(np.argmax(outside))
            refuse(source, f"row {row} of '{field}' points at frame {newest[row]}, which is not among {len(stored)}.")
        columns[column] = Frames(stored, newest.astype(np.int32), bits, stack)
    return columns


def _integers(archive: np.lib.npyio.NpzFile, field: str, source: str) -> NDArray[np.int64]:
    values = _array(archive, field, source)
    if values.dtype.kind not in "iu" or values.ndim > 1 or values.size == 0:
        refuse(source, f"'{field}' must hold whole numbers in one row.")
    return values.reshape(-1).astype(np.int64)


def _arrays(path: Path) -> dict[str, Any]:
    source = str(path)
    _check_is_archive(path)
    try:
        # Opened here, because numpy leaves the file open when the archive cannot be read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            names = set(archive.files)
            if "frames" in names:
                names = names - {*FRAMES, *FRAME_OPTIONS} | FRAME_POINTERS.keys()
            check_names(names, source)
            framed = _frames(archive, source) if "frames" in archive.files else {}
            wanted = [field for field in REQUIRED + OPTIONAL if field in archive.files and field not in framed]
            return {**framed, **{field: _array(archive, field, source) for field in wanted}}
    except DAMAGE:
        refuse(source, "the archive is damaged or was cut short; copy or write it again.")


def _check_is_archive(path: Path) -> None:
    source, head = str(path), first_bytes(path, 6)
    if head == b"\x93NUMPY":
        refuse(source, "this is a single .npy array; write the named arrays with numpy.savez instead.")
    if not head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        refuse(source, "this is not a .npz file (a zip archive of arrays).")


def _array(archive: np.lib.npyio.NpzFile, field: str, source: str) -> Values:
    try:
        values = archive[field]
    except ValueError as error:
        if "allow_pickle" in str(error):
            refuse(source, f"'{field}' holds pickled Python objects, which are never loaded; store plain numbers.")
        refuse(source, f"'{field}' is not a readable array; write the file again.")
    except DAMAGE:
        refuse(source, f"'{field}' is damaged or was cut short; copy or write the file again.")
    except (MemoryError, OverflowError):  # the header of an array is believed before a byte of it is read
        refuse(source, f"'{field}' claims to be larger than the memory; it is damaged, or too large for this machine.")
    if not isinstance(values, np.ndarray):
        refuse(source, f"'{field}' is not an array.")
    return values
