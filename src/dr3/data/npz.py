"""Logged data in numpy's own archive: one named array for each column."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from dr3.data.assemble import OPTIONAL, REQUIRED, assemble, check_names
from dr3.data.checks import Values, refuse
from dr3.data.transitions import DiscreteActions, Transitions

COLUMNS = (
    "observations",
    "actions",
    "rewards",
    "next_observations",
    "terminals",
    "timeouts",
    "next_actions",
    "next_action_known",
    "returns",
    "episodes",
)
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
    path = Path(path)
    arrays: dict[str, Any] = {column: getattr(transitions, column) for column in COLUMNS}
    arrays["returns_discount"] = np.float64(transitions.returns_discount)
    arrays["name"] = np.str_(transitions.name)
    if transitions.world is not None:
        arrays["world"] = np.str_(transitions.world)
    if transitions.next_behavior is not None:
        arrays["next_behavior"] = transitions.next_behavior
    space = transitions.action_space
    if isinstance(space, DiscreteActions):
        arrays["num_actions"] = np.int64(space.count)
    else:
        arrays["action_low"], arrays["action_high"] = np.float64(space.low), np.float64(space.high)

    if not path.parent.is_dir():
        refuse(str(path), "the folder it should be written to does not exist.")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("wb") as file:
            np.savez_compressed(file, **arrays)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _arrays(path: Path) -> dict[str, Values]:
    source = str(path)
    _check_is_archive(path)
    try:
        # Opened here, because numpy leaves the file open when the archive cannot be read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            check_names(archive.files, source)
            return {field: _array(archive, field, source) for field in REQUIRED + OPTIONAL if field in archive.files}
    except DAMAGE:
        refuse(source, "the archive is damaged or was cut short; copy or write it again.")


def _check_is_archive(path: Path) -> None:
    source = str(path)
    if path.is_dir():
        refuse(source, "this is a folder, but a file is needed.")
    if not path.exists():
        refuse(source, "there is no such file.")
    try:
        with path.open("rb") as file:
            head = file.read(6)
    except OSError as error:
        refuse(source, f"the file cannot be opened ({error.strerror}).")
    if not head:
        refuse(source, "the file is empty (0 bytes).")
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
    if not isinstance(values, np.ndarray):
        refuse(source, f"'{field}' is not an array.")
    return values
