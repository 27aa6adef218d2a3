"""Logged rows with what the run's own policy made of them: the evidence that lies beside an exported policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.npz import stored_arrays
from dr3.errors import UserError
from dr3.files import written_whole

ROWS = 1_024
BYTES = 8 * 2**20  # of observations, before they are compressed
EXPECTED = "expected."
ROW = "row"

Arrays = dict[str, NDArray[Any]]


def probe_rows(count: int, bytes_per_row: int) -> NDArray[np.int64]:
    """Which of the logged rows are kept: evenly over all of them, as many as there is place for."""
    kept = max(1, min(count, ROWS, BYTES // max(bytes_per_row, 1)))
    return np.unique(np.linspace(0, count - 1, kept).round().astype(np.int64))


def write_probe(path: Path, rows: NDArray[np.int64], inputs: Arrays, expected: Arrays) -> None:
    """One npz: the numbers of the rows in the data, the policy's inputs by name, and its outputs."""
    arrays = {ROW: rows, **inputs, **{f"{EXPECTED}{name}": array for name, array in expected.items()}}
    with written_whole(path) as unfinished, unfinished.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def read_probe(path: Path) -> tuple[NDArray[np.int64], Arrays, Arrays]:
    """Row numbers, inputs and expected outputs."""
    if not path.exists():
        raise UserError(f"{path} is missing: it holds the rows to replay; copy it along with the policy.")
    arrays = stored_arrays(path, "export the policy again.")
    rows = arrays.pop(ROW, None)
    if rows is None or rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        raise UserError(f"{path} holds no rows to replay; export the policy again.")
    for name, array in arrays.items():
        if array.shape[:1] != rows.shape or array.dtype.kind not in "biuf":
            raise UserError(f"{path}: {name!r} holds no numbers for {len(rows)} rows; export the policy again.")
    expected = {name.removeprefix(EXPECTED): array for name, array in arrays.items() if name.startswith(EXPECTED)}
    return rows, {name: array for name, array in arrays.items() if not name.startswith(EXPECTED)}, expected
