"""D4RL's HDF5 files: one flat dataset for each column, episodes one behind the other."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.assemble import OPTIONAL, REQUIRED, assemble, check_names
from dr3.data.checks import Values, check_booleans, check_numbers, refuse
from dr3.data.columns import columns_of
from dr3.data.frames import same_rows
from dr3.data.gate import announce, first_bytes, gated
from dr3.data.observed import CACHE, SIDES, Observed
from dr3.data.row_cache import fits_in_memory
from dr3.data.transitions import Transitions
from dr3.envs.parts import Parts
from dr3.envs.tasks import RobotTask, find_task
from dr3.errors import UserError
from dr3.files import written_whole

MAGIC = b"\x89HDF\r\n\x1a\n"
# What a file of ours says of itself: all columns are there, as they stood in the table.
WHOLE = "dr3_table"
# What h5py raises, depending on which byte is wrong.
ENTRY = 8  # bytes that a file needs at least to say where a chunk lies
UNREADABLE = (OSError, RuntimeError, KeyError, ValueError)
_OURS = ("next_observations", "next_actions", "next_action_known", "returns", "returns_discount", "next_behavior")


@gated
def read_d4rl(
    path: str | os.PathLike[str],
    *,
    discount: float = 0.99,
    limit: int | None = None,
    action_low: float | None = None,
    action_high: float | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Transitions:
    """Read a file of D4RL, or one with the same datasets. What D4RL does to make rows of it is done here too:

    - A time-out is no terminal. s' is the observation of the next row; the last row of an episode that was cut is
      dropped, for s' would be the first observation of the next episode. (Behind a terminal too, the file goes on with
      the next episode: such an s' is replaced by s, and nothing may use it. D4RL drops the last row of the file even
      if it is a terminal; here it is kept.)
    - A file without `timeouts`: an episode is cut after `limit` steps, by default the time limit of the task that the
      file's name tells (`hopper_random.hdf5`).
    - `next_observations`, where the file has them, are not read for s' (D4RL never does), but they are compared: where
      one is not the observation of the next row, the log was cut there too, and then all of them are taken.
    - `infos/…` and `metadata/…` are passed over. Everything is float32.

    Observations that would take much of the memory are unpacked once into a file of rows, and mapped from there.

    Rewards stay as they are; what a method makes of them (AntMaze: (r - 0.5) 4) is its own setting.

    Args:
        path: The file or folder.
        discount: γ of the Monte-Carlo returns, where the log holds none.
        limit: After how many steps episodes were cut, for a file that does not say where.
        action_low: The least that an action can be; by default what the file says, or -1.
        action_high: The most; by default what the file says, or 1.
        cache: A folder to unpack observations into, however few; by default one beside the file, if they are many.
    """
    path = Path(path)
    source = str(path)
    h5py = hdf5(source)
    if first_bytes(path, len(MAGIC)) != MAGIC:
        refuse(source, "this is not an HDF5 file.")
    try:
        with h5py.File(path, "r") as file:
            for side in SIDES:
                if side in file:
                    hdf5_item(file, side, source)  # refused before it is looked at
            stored = Observed.in_file(file, source, h5py) if cache is not None or _is_large(file, h5py) else None
            columns = _columns(file, source, h5py, without=() if stored is None else SIDES)
            whole = WHOLE in file.attrs
            bounds = {"action_low": action_low, "action_high": action_high}
            columns |= {name: np.array(value) for name, value in bounds.items() if value is not None}
            parts = None
            if stored is not None:
                columns |= stored.numbers()
                parts = columns.pop("observation_parts", None)
            if not whole:
                cuts = _unmarked_cuts if stored is None else stored.unmarked_cuts
                columns = _as_d4rl(columns, source, limit, find_task(path.stem), cuts)
            table = assemble(columns, source=source, name=path.stem, discount=discount)
            if stored is None:
                return table
            found = None if parts is None else Parts.from_json(str(parts))
            folder = path.parent / CACHE if cache is None else Path(cache)
            return dataclasses.replace(stored.unpacked(table, path, folder), parts=found)
    except UNREADABLE:
        refuse(source, "the file is damaged or was cut short; copy or write it again.")


def write_d4rl(path: str | os.PathLike[str], transitions: Transitions) -> None:
    """Write a table with all its columns, compressed; reading it gives the same fingerprint.

    D4RL's own names are at the top, so that its readers find what they expect. They take the next row's observation
    for s': with a table whose rows do not follow each other (a random subset), only we read what was written.

    Args:
        path: The file or folder.
        transitions: The table to write.
    """
    path = Path(path)
    h5py = hdf5(str(path))
    with written_whole(path) as unfinished, h5py.File(unfinished, "w") as file:
        file.attrs[WHOLE] = 1
        observed = {field: np.asarray(getattr(transitions, field)) for field in ("observations", "next_observations")}
        for field, values in {**observed, **columns_of(transitions)}.items():
            if values.dtype.kind == "U":
                file[field] = str(values)
            elif values.ndim:
                file.create_dataset(field, data=values, compression="gzip", compression_opts=4, shuffle=True)
            else:
                file[field] = values


def hdf5(source: str) -> Any:
    """The module h5py."""
    try:
        return import_module("h5py")
    except ImportError:
        raise UserError(f"{source}: reading and writing HDF5 needs h5py: pip install 'dr3[hdf5]'.") from None


def _is_large(file: Any, h5py: Any) -> bool:
    """Whether both columns of observations are more than is kept in memory unasked."""
    item = file.get("observations")
    return isinstance(item, h5py.Dataset) and not fits_in_memory(2 * item.nbytes)


def _columns(file: Any, source: str, h5py: Any, without: Collection[str] = ()) -> dict[str, Any]:
    items = {name: item for name in file if isinstance(item := hdf5_item(file, name, source), h5py.Dataset)}
    check_names(items, source)
    wanted = {field: items[field] for field in REQUIRED + OPTIONAL if field in items and field not in without}
    announce(source, sum(map(unpacked_bytes, wanted.values())), os.path.getsize(source))
    return {field: dataset(item, field, source) for field, item in wanted.items()}


def hdf5_item(group: Any, name: str, source: str) -> Any:
    """A group or dataset of this very file: one that is a part of another file, which HDF5 can name, is refused."""
    link = type(group.get(name, getlink=True)).__name__
    item = None if link == "ExternalLink" else group[name]
    if item is None or getattr(item, "external", None) is not None or getattr(item, "is_virtual", False):
        refuse(source, f"its '{name}' lies in another file; copy the data into one.")
    if getattr(item, "chunks", None) and _chunks(item) * ENTRY > os.path.getsize(item.file.filename):
        refuse(source, f"its '{name}' claims {len(item):,} rows, and cannot hold them; copy or write the file again.")
    return item


def _chunks(item: Any) -> int:
    """How many chunks a dataset claims. HDF5 takes some 400 bytes of memory for each, stored or not.

    It could count those that are stored, but crashes over some damaged files while it does.
    """
    return math.prod(-(-size // chunk) for size, chunk in zip(item.shape, item.chunks, strict=True))


def unpacked_bytes(item: Any) -> int:
    """What reading a dataset takes: all of it, or one of its chunks, which may claim to be far larger."""
    chunk = math.prod(item.chunks or ()) * item.dtype.itemsize if item.chunks else 0
    return max(item.nbytes, chunk)


def dataset(item: Any, field: str, source: str) -> Values:
    """One array of the file; text comes as numpy's."""
    try:
        values = item[()]
    except UNREADABLE:
        refuse(source, f"'{field}' is damaged or was cut short; copy or write the file again.")
    return np.asarray(values.decode() if isinstance(values, bytes) else values)


def _as_d4rl(
    columns: Mapping[str, Any],
    source: str,
    limit: int | None,
    task: RobotTask | None,
    cuts: Callable[[Values, Values, NDArray[np.bool_]], NDArray[np.bool_]],
) -> dict[str, Any]:
    """The columns that D4RL looks at, with the cuts marked."""
    kept = {field: values for field, values in columns.items() if field not in _OURS}
    if "masks" in kept and np.ndim(kept["masks"]) == 1:  # some keep 1 - terminal under this name
        del kept["masks"]
    rows = len(np.atleast_1d(kept["observations"]))
    terminals = check_booleans(source, "terminals", kept["terminals"], rows)
    if "timeouts" not in kept:
        limit = limit or (None if task is None else task.limit)
        if limit is None:
            refuse(
                source,
                "'timeouts' is missing and the file's name is none of D4RL's; say after how many steps an episode is "
                f"cut, as in {Path(source).name}:limit=1000.",
            )
        kept["timeouts"] = counted_timeouts(terminals, limit)
    if "next_observations" in columns:
        ends = terminals | check_booleans(source, "timeouts", kept["timeouts"], rows)
        following = check_numbers(source, "next_observations", columns["next_observations"], rows)
        cut = cuts(check_numbers(source, "observations", kept["observations"], rows), following, ends)
        if cut.any():
            kept |= {"next_observations": following, "timeouts": (ends & ~terminals) | cut}
    if task is not None:
        kept.setdefault("world", np.array(task.world))
    return kept


def _unmarked_cuts(now: Values, following: Values, ends: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows whose logged s' is not the next row's observation, though nothing ends there."""
    if now.shape != following.shape:
        return np.ones(len(now), np.bool_)  # to be refused with the shapes
    rows = np.arange(len(now) - 1)
    return np.append(~same_rows(following, rows, now, rows + 1), False) & ~ends


def counted_timeouts(terminals: NDArray[np.bool_], limit: int) -> NDArray[np.bool_]:
    """Where an episode is cut that has lasted `limit` steps without a terminal."""
    if limit < 1:
        raise UserError(f"The limit of an episode must be at least 1 step, not {limit}.")
    rows = np.arange(len(terminals))
    starts = np.r_[0, np.flatnonzero(terminals) + 1]
    age = rows - starts[np.searchsorted(starts, rows, side="right") - 1]
    return (age % limit == limit - 1) & ~terminals
