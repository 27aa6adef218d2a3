"""Logged data in numpy's own archive: one named array for each column."""

from __future__ import annotations

import lzma
import math
import os
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.assemble import OPTIONAL, REQUIRED, assemble, check_names
from dr3.data.checks import Values, check_fits_in_32_bits, refuse
from dr3.data.columns import columns_of
from dr3.data.frames import Frames, compact
from dr3.data.gate import announce, first_bytes, gated, opened, read_array
from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.files import written_whole

# Instead of observations and next_observations: each frame once, and which of them a row looks at.
FRAME_POINTERS = {"observations": "observation_frames", "next_observations": "next_observation_frames"}
FRAMES = ("frames", *FRAME_POINTERS.values())
# `frame_shape`: frames are booleans of that shape, packed eight to a byte. `frame_stack`: an observation is so many
# frames in a row, up to the one that is pointed at.
FRAME_OPTIONS = ("frame_shape", "frame_stack")
# What zipfile raises for bytes that are wrong in one place or another (an unknown compression, a cipher, …).
DAMAGE: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    SyntaxError,  # of numpy, about the header of an array; so is the next
    TokenError,
    MemoryError,
)


@gated
def read_npz(path: str | os.PathLike[str], *, discount: float = 0.99) -> Transitions:
    """Read a table; which arrays the file needs, and what is derived without the others, is said in `assemble`.

    Pickled objects are never loaded: they could run any program.

    Args:
        path: The file or folder.
        discount: γ of the Monte-Carlo returns, where the log holds none.
    """
    path = Path(path)
    return assemble(_arrays(path), source=str(path), name=path.stem, discount=discount)


def write_npz(path: str | os.PathLike[str], transitions: Transitions) -> None:
    """Write a table with all its columns, compressed, so that reading it gives the same fingerprint.

    The file appears under its name only when it is whole: it is written beside it first, and then renamed.

    Args:
        path: The file or folder.
        transitions: The table to write.
    """
    arrays: dict[str, Any] = {**_observation_arrays(transitions), **columns_of(transitions)}
    with written_whole(Path(path)) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays)


def stored_arrays(path: Path, advice: str) -> dict[str, Any]:
    """The arrays of an archive that dr3 itself has written; if it is damaged, a sentence that ends with an advice."""
    damaged = f"the file is damaged or was cut short; {advice}"
    with opened(path) as file:
        try:
            archive = _Archive(zipfile.ZipFile(file), str(path))
        except DAMAGE:
            refuse(str(path), damaged)
        announce(str(path), sum(archive.sizes.values()), path.stat().st_size)
        try:
            return {name: archive.array(name) for name in archive.sizes}
        except UserError:
            refuse(str(path), damaged)


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


def _frames(archive: _Archive, source: str) -> dict[str, Frames]:
    """Both columns of observations over one store of frames, checked: a row must not point outside it."""
    for field in FRAMES:
        if field not in archive.sizes:
            refuse(source, f"'{field}' is missing; a file with frames needs {', '.join(FRAMES)}.")
    stored = archive.array("frames")
    if stored.dtype.kind not in "bui" or stored.ndim < 2 or len(stored) == 0:
        refuse(source, f"'frames' has shape {stored.shape} and type {stored.dtype}, but it holds images of integers.")
    check_fits_in_32_bits(source, "frames", stored)
    bits, stack = None, None
    if "frame_shape" in archive.sizes:
        bits = tuple(int(size) for size in _integers(archive, "frame_shape", source))
        if min(bits, default=0) < 1 or stored.dtype != np.uint8 or stored.shape[1:] != (-(-math.prod(bits) // 8),):
            refuse(source, f"'frames' has shape {stored.shape}, which is not that of packed booleans {bits}.")
    if "frame_stack" in archive.sizes:
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


def _integers(archive: _Archive, field: str, source: str) -> NDArray[np.int64]:
    values = archive.array(field)
    if values.dtype.kind not in "iu" or values.ndim > 1 or values.size == 0:
        refuse(source, f"'{field}' must hold whole numbers in one row.")
    return values.reshape(-1).astype(np.int64)


def _arrays(path: Path) -> dict[str, Any]:
    source = str(path)
    _check_is_archive(path)
    try:
        with opened(path) as file, zipfile.ZipFile(file) as opened_archive:
            archive = _Archive(opened_archive, source)
            names = set(archive.sizes)
            if "frames" in names:
                names = names - {*FRAMES, *FRAME_OPTIONS} | FRAME_POINTERS.keys()
            check_names(names, source)
            wanted = [field for field in (*REQUIRED, *OPTIONAL, *FRAMES, *FRAME_OPTIONS) if field in archive.sizes]
            announce(source, sum(archive.sizes[field] for field in wanted), path.stat().st_size)
            framed = _frames(archive, source) if "frames" in archive.sizes else {}
            plain = [field for field in REQUIRED + OPTIONAL if field in archive.sizes and field not in framed]
            return {**framed, **{field: archive.array(field) for field in plain}}
    except DAMAGE:
        refuse(source, "the archive is damaged or was cut short; copy or write it again.")


class _Archive:
    """The arrays of a zip archive by their names, each with the bytes that it unpacks to."""

    def __init__(self, archive: zipfile.ZipFile, source: str) -> None:
        self.archive, self.source = archive, source
        self.entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        self.sizes = {name: entry.file_size for name, entry in self.entries.items()}

    def array(self, field: str) -> Values:
        entry, place = self.entries[field], f"{self.source}: '{field}'"
        try:
            with self.archive.open(entry) as stream:
                values = read_array(stream, place, stored=entry.compress_size, size=entry.file_size)
                stream.read(1)  # only on looking for more does zipfile compare the checksum of what was read
                return values
        except DAMAGE:
            refuse(self.source, f"'{field}' is damaged or was cut short; copy or write the file again.")


def _check_is_archive(path: Path) -> None:
    source, head = str(path), first_bytes(path, 6)
    if head == b"\x93NUMPY":
        refuse(source, "this is a single .npy array; write the named arrays with numpy.savez instead.")
    if not head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        refuse(source, "this is not a .npz file (a zip archive of arrays).")
