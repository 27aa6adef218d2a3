"""One door for every format."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dr3.data.cog import read_cog
from dr3.data.d4rl import read_d4rl
from dr3.data.gate import gated
from dr3.data.minari import is_minari, read_minari
from dr3.data.npz import read_npz
from dr3.data.tables import Schema, is_table_folder, read_table
from dr3.data.tables.source import FORMATS
from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.registry import Registry

# By the ending of a file's name: a function (path, *, discount), with those settings of `read` that it takes.
READERS = Registry(
    "reader",
    {".npz": read_npz, ".hdf5": read_d4rl, ".h5": read_d4rl, ".npy": read_cog, **dict.fromkeys(FORMATS, read_table)},
)


# What a setting is for, where a reader does not take it.
_FOR = {
    "limit": "a limit of episodes is for HDF5 files that do not say where episodes were cut",
    "schema": "a schema is for tables (Parquet, CSV, Arrow)",
    "cache": "a cache is for what is unpacked (tables, HDF5 files and DQN-replay folders)",
    "action_low": "action_low and action_high are settings of HDF5 files; other formats hold their own",
    "action_high": "action_low and action_high are settings of HDF5 files; other formats hold their own",
}


def read(
    path: str | os.PathLike[str],
    *,
    discount: float = 0.99,
    limit: int | None = None,
    allow_pickle: bool = False,
    schema: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    action_low: float | None = None,
    action_high: float | None = None,
) -> Transitions:
    """Read logged data; the ending of the name says how, and a folder of Minari says it itself.

    Args:
        path: The file or folder.
        discount: γ of the Monte-Carlo returns, where the log holds none.
        limit: After how many steps episodes were cut, for a file that does not say where.
        allow_pickle: Load COG's own files, which are pickles and may run any program.
        schema: What the columns of a table mean.
        cache: A folder to unpack a table into.
        action_low: The least that an action can be, where an HDF5 file does not say it.
        action_high: The most.
    """
    given = {"limit": limit, "schema": schema, "cache": cache, "action_low": action_low, "action_high": action_high}
    asked = {name: value for name, value in given.items() if value is not None}
    if is_minari(Path(path)):
        _refuse_settings(path, asked)
        return read_minari(path, discount=discount)
    if is_table_folder(Path(path)):
        _refuse_settings(path, {name: value for name, value in asked.items() if name not in ("schema", "cache")})
        return read_table(path, schema=schema, cache=cache, discount=discount)
    if Path(path).is_dir():
        raise UserError(
            f"{path}: this folder holds neither Minari's files (data/metadata.json) nor DQN-replay files nor tables."
        )
    suffix = Path(path).suffix.lower()
    if suffix not in READERS:
        ending = f"the ending {suffix!r}" if suffix else "a name without an ending"
        raise UserError(
            f"{path}: {ending} says nothing about the format; what can be read is {', '.join(READERS)} and folders of "
            "Minari."
        )
    reader = gated(READERS[suffix])  # a plugin's too
    taken = inspect.signature(reader).parameters
    _refuse_settings(path, {name: value for name, value in asked.items() if name not in taken})
    if "allow_pickle" in taken:
        asked["allow_pickle"] = allow_pickle
    return reader(path, discount=discount, **asked)


def _refuse_settings(path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
    for name in settings:
        raise UserError(f"{path}: {_FOR[name]}.")
