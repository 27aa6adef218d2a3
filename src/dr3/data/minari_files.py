"""The files of a Minari data set: what a folder says of itself, and its episodes, from HDF5 or Arrow.

A folder holds `data/metadata.json`, and either `data/main_data.hdf5` with a group for each episode, or
`data/0/…`, `data/1/…` with a table for each. Neither Minari nor the environment is needed to read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import refuse
from dr3.data.d4rl import UNREADABLE, hdf5
from dr3.errors import UserError

MAIN = "main_data.hdf5"
METADATA = "metadata.json"
FORMATS = ("hdf5", "arrow")
DAMAGED = "the file is damaged or was cut short; copy or write it again."
COLUMNS = ("rewards", "terminations", "truncations")


class Episode(NamedTuple):
    """T steps and the T + 1 observations around them; observations and actions with parts are mappings or tuples."""

    source: str
    observations: Any
    actions: Any
    rewards: NDArray[Any]
    terminations: NDArray[Any]
    truncations: NDArray[Any]


def is_minari(folder: Path) -> bool:
    return (folder / "data" / METADATA).is_file()


def read_metadata(folder: Path) -> dict[str, Any]:
    """What the folder says of itself; the spaces and the environment are JSON inside of JSON, and are unpacked too."""
    path = folder / "data" / METADATA
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        nested = ("observation_space", "action_space", "env_spec")
        return found | {key: json.loads(found[key]) for key in nested if isinstance(found.get(key), str)}
    except (ValueError, TypeError, AttributeError):  # the last: JSON, but no object
        refuse(str(path), "this is no whole JSON object; copy or write the folder again.")


def episodes_of(folder: Path, metadata: dict[str, Any]) -> Iterator[Episode]:
    """Every episode, in the order of their numbers."""
    form = metadata.get("data_format", "hdf5")
    if form not in (*FORMATS, "parquet"):
        refuse(str(folder / "data" / METADATA), f"its 'data_format' is {form!r}; hdf5, arrow and parquet can be read.")
    return _from_hdf5(folder / "data" / MAIN) if form == "hdf5" else _from_arrow(folder / "data", form)


def arrow(source: str) -> Any:
    """The module pyarrow, with the parts of it that are used."""
    try:
        for part in ("pyarrow.dataset", "pyarrow.ipc"):
            import_module(part)
        return import_module("pyarrow")
    except ImportError:
        raise UserError(f"{source}: reading and writing Arrow needs pyarrow: pip install 'dr3[minari]'.") from None


def _from_hdf5(path: Path) -> Iterator[Episode]:
    source = str(path)
    h5py = hdf5(source)
    if not path.is_file():
        refuse(source, "this file is missing.")

    def unpack(item: Any) -> Any:
        if isinstance(item, h5py.Group):
            return _as_tuple({name: unpack(item[name]) for name in item}, "_index_")
        return item[()]

    try:
        with h5py.File(path, "r") as file:
            for name in sorted(file, key=_number):
                group = file[name]
                place = f"{source}, {name}"
                for field in ("observations", "actions", *COLUMNS):
                    if field not in group:
                        refuse(place, f"'{field}' is missing.")
                columns = (np.asarray(group[field][()]) for field in COLUMNS)
                yield Episode(place, unpack(group["observations"]), unpack(group["actions"]), *columns)
    except UNREADABLE:
        refuse(source, DAMAGED)


def _from_arrow(folder: Path, form: str) -> Iterator[Episode]:
    pyarrow = arrow(str(folder))

    def unpack(column: Any) -> Any:
        kind = column.type
        if pyarrow.types.is_struct(kind):
            parts = {kind.field(number).name: column.field(number) for number in range(kind.num_fields)}
            return _as_tuple({name: unpack(part) for name, part in parts.items()}, "")
        if pyarrow.types.is_fixed_size_list(kind):
            return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, kind.list_size)
        return column.to_numpy(zero_copy_only=False)

    for part in sorted((part for part in folder.iterdir() if part.is_dir()), key=lambda part: _number(part.name)):
        try:
            found = pyarrow.dataset.dataset(part, format=form, ignore_prefixes=["_", ".", METADATA]).to_table()
        except (pyarrow.ArrowException, OSError):
            refuse(str(part), DAMAGED)
        columns = {name: found[name].combine_chunks() for name in found.column_names}
        for field in ("observations", "actions", *COLUMNS):
            if field not in columns:
                refuse(str(part), f"'{field}' is missing.")
        # The last row holds the last observation alone.
        steps = slice(0, len(found) - 1)
        flags = (np.asarray(columns[field])[steps] for field in COLUMNS)
        yield Episode(str(part), unpack(columns["observations"]), unpack(columns["actions"][steps]), *flags)


def _as_tuple(parts: dict[str, Any], prefix: str) -> Any:
    """A tuple is stored as a mapping whose keys count."""
    keys = [f"{prefix}{number}" for number in range(len(parts))]
    return tuple(parts[key] for key in keys) if set(keys) == set(parts) else parts


def _number(name: str) -> int:
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isdigit() else -1
