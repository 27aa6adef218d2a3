"""Observations of an HDF5 file that are not read as a whole, but unpacked into a file of rows.

The table is assembled with the numbers of rows in the place of observations: which s, and which s', each transition
has. Then both are copied from the file, some rows at a time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import check_fits_in_32_bits, refuse
from dr3.data.frames import CHUNK
from dr3.data.mapped import let_go
from dr3.data.row_cache import UnpackedRows, cached_rows
from dr3.data.transitions import Transitions
from dr3.progress import reporter

SIDES = ("observations", "next_observations")
CACHE = ".dr3-cache"
MANY = 1_000_000  # rows: some seconds, which are not passed in silence


@dataclass(frozen=True)
class Observed:
    """The datasets of a file that is open."""

    now: Any
    following: Any  # None where the file has no next_observations
    source: str

    @classmethod
    def in_file(cls, file: Any, source: str, h5py: Any) -> Observed | None:
        """None where what is there is no column of rows, which is refused elsewhere."""
        now, following = (file.get(name) for name in SIDES)
        if not isinstance(now, h5py.Dataset) or now.ndim < 2 or 0 in now.shape or now.dtype.kind not in "biuf":
            return None
        if following is not None and (not isinstance(following, h5py.Dataset) or following.shape != now.shape):
            return None
        return cls(now, following, source)

    def numbers(self) -> dict[str, NDArray[np.int32]]:
        """In the place of observations their row, and in that of next ones theirs, counted on behind the former."""
        rows = np.arange(len(self.now), dtype=np.int32)[:, None]
        return {"observations": rows} | ({} if self.following is None else {"next_observations": rows + len(self.now)})

    def unmarked_cuts(self, now: Any, following: Any, ends: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rows whose logged s' is not the next row's observation, though nothing ends there."""
        other = np.zeros(len(ends), np.bool_)
        for start in range(0, len(ends) - 1, CHUNK):
            stop = min(start + CHUNK, len(ends) - 1)
            behind = self._read(self.now, "observations", start + 1, stop + 1)
            logged = self._read(self.following, "next_observations", start, stop)
            other[start:stop] = (behind != logged).reshape(stop - start, -1).any(axis=1)
        return other & ~ends

    def unpacked(self, numbered: Transitions, path: Path, folder: Path) -> Transitions:
        """A table of numbers with observations in their place, mapped from a file in `folder`."""
        own, behind = (np.asarray(getattr(numbered, side))[:, 0].astype(np.int64) for side in SIDES)
        kind = self._read(self.now, "observations", 0, 1).dtype
        dtype = np.dtype([(side, kind, self.now.shape[1:]) for side in SIDES])
        found = path.stat()
        which = hashlib.sha256(own.tobytes() + behind.tobytes()).hexdigest()
        key = {"file": [str(path.resolve()), found.st_size, found.st_mtime_ns], "rows": which}

        def unpack(allocate: Any) -> UnpackedRows:
            out, began = allocate(len(own), dtype), time.monotonic()
            with reporter(path.stem, 0, len(own), show=len(own) >= MANY, unit="rows") as progress:
                for start in range(0, len(own), CHUNK):
                    rows = slice(start, start + CHUNK)
                    for side, numbers in zip(SIDES, (own[rows], behind[rows]), strict=True):
                        out[side][rows] = self._rows(numbers)
                    let_go(out)
                    done = min(start + CHUNK, len(own))
                    progress.at(done, per_second=done / max(time.monotonic() - began, 1e-9), note="")
            return UnpackedRows(out, (), (), ())

        rows = cached_rows(folder, self.source, key, len(own) * dtype.itemsize, unpack)
        return dataclasses.replace(numbered, **{side: rows.values[side] for side in SIDES})

    def _rows(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Rows by their numbers, which grow."""
        least, most = int(numbers[0]), int(numbers[-1]) + 1
        if least < len(self.now):
            return self._read(self.now, "observations", least, most)[numbers - least]
        first = len(self.now)
        return self._read(self.following, "next_observations", least - first, most - first)[numbers - least]

    def _read(self, item: Any, field: str, start: int, stop: int) -> NDArray[Any]:
        """Some rows, floats as float32, checked as they are where a file is read as a whole."""
        values = np.asarray(item[start:stop])
        if values.dtype.kind != "f":
            check_fits_in_32_bits(self.source, field, values)
            return values
        with np.errstate(over="ignore"):
            single = values.astype(np.float32)
        broken = ~np.isfinite(single).reshape(len(single), -1).all(axis=1)
        if broken.any():
            refuse(
                self.source,
                f"row {start + int(np.argmax(broken))} of '{field}' holds a number that is not finite (as a float32).",
            )
        return single
