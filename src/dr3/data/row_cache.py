"""Rows in a file: each row's columns side by side, so that drawing a row touches one page of the disk.

A table that the memory cannot hold is unpacked once into such a file, and mapped from then on.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dr3.cores import machine_memory
from dr3.data.checks import refuse
from dr3.data.gate import check_may_unpack
from dr3.data.mapped import expect_random
from dr3.errors import UserError
from dr3.files import check_folder, read_json, write_json

MEMORY_SHARE = 0.25  # of the memory, that a table may take without being asked
SPARE = 1.05  # of the disk, beyond the rows


@dataclass(frozen=True)
class UnpackedRows:
    """A table as one array of rows, with what is to be said about it."""

    values: Any  # (N,) of a structured type
    left_out: tuple[tuple[str, int], ...]
    filled: tuple[tuple[str, int], ...]
    remarks: tuple[str, ...]


def fits_in_memory(size: int) -> bool:
    """Whether so many bytes are few enough to be kept in memory."""
    return size <= MEMORY_SHARE * machine_memory()


def cached_rows(
    folder: Path, source: str, key: Mapping[str, Any], size: int, unpack: Callable[[Any], UnpackedRows]
) -> UnpackedRows:
    """The rows of a source, unpacked into a file of `folder` if they are not there already.

    Args:
        folder: Where the file is, under a name that follows from the key.
        source: What to call the source in a refusal.
        key: All that the rows follow from.
        size: How many bytes they take at most.
        unpack: Given a function that makes an array of (rows, type), fills it.
    """
    word = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    file, about = folder / f"{word}.rows", folder / f"{word}.json"
    if about.is_file():
        record = read_json(about, dtype=list, rows=int, left_out=list, filled=list, remarks=list)
        dtype = np.dtype([(name, kind, tuple(shape)) for name, kind, shape in record["dtype"]])
        if not file.is_file() or file.stat().st_size != record["rows"] * dtype.itemsize:
            refuse(str(file), "what was unpacked here is gone or was cut short; remove it, and it is made anew.")
        counted = (tuple((what, count) for what, count in record[name]) for name in ("left_out", "filled"))
        return UnpackedRows(_mapped(file, dtype, record["rows"]), *counted, tuple(record["remarks"]))
    check_may_unpack(file)
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(folder).free) < SPARE * size:
        refuse(
            source,
            f"unpacking it takes up to {SPARE * size / 1e9:.1f} GB in {folder}, but {free / 1e9:.1f} GB are free; give "
            "another place with :cache=FOLDER.",
        )
    unfinished = folder / f".{word}.{os.getpid()}.unfinished"
    try:
        rows = unpack(lambda count, dtype: np.memmap(unfinished, dtype, "w+", shape=(count,)))
        rows.values.flush()
        dtype = rows.values.dtype
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
    kinds = [(name, dtype[name].base.str, list(dtype[name].shape)) for name in dtype.names]
    record = {"source": source, "dtype": kinds, "rows": len(rows.values)}
    write_json(about, record | {name: getattr(rows, name) for name in ("left_out", "filled", "remarks")})
    return replace(rows, values=_mapped(file, dtype, len(rows.values)))


def _mapped(file: Path, dtype: np.dtype[Any], rows: int) -> Any:
    try:
        values = np.memmap(file, dtype, "r", shape=(rows,))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: the rows that were unpacked here cannot be mapped ({error}).") from None
    expect_random(values)
    return values
