"""One door for every format."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dr3.data.cog import read_cog
from dr3.data.d4rl import read_d4rl
from dr3.data.minari import read_minari
from dr3.data.minari_files import is_minari
from dr3.data.npz import read_npz
from dr3.data.transitions import Transitions
from dr3.errors import UserError

READERS: dict[str, Callable[..., Transitions]] = {
    ".npz": read_npz,
    ".hdf5": read_d4rl,
    ".h5": read_d4rl,
    ".npy": read_cog,
}


def read(
    path: str | os.PathLike[str], *, discount: float = 0.99, limit: int | None = None, allow_pickle: bool = False
) -> Transitions:
    """Read logged data; the ending of the name says how, and a folder of Minari says it itself.

    `discount` is for the Monte-Carlo returns where the file holds none; `limit` is the length at which episodes were
    cut, for a file of D4RL that does not say where; `allow_pickle` lets COG's own files be loaded, which are pickles.
    """
    if is_minari(Path(path)):
        return read_minari(path, discount=discount)
    if Path(path).is_dir():
        raise UserError(f"{path}: this folder holds neither Minari's files (data/metadata.json) nor DQN-replay files.")
    suffix = Path(path).suffix.lower()
    if suffix not in READERS:
        ending = f"the ending {suffix!r}" if suffix else "a name without an ending"
        raise UserError(
            f"{path}: {ending} says nothing about the format; what can be read is {', '.join(READERS)} and folders of "
            "Minari."
        )
    reader, settings = READERS[suffix], dict[str, Any]()
    if limit is not None:
        if reader is not read_d4rl:
            raise UserError(f"{path}: a limit of episodes is for HDF5 files that do not say where episodes were cut.")
        settings["limit"] = limit
    if reader is read_cog:
        settings["allow_pickle"] = allow_pickle
    return reader(path, discount=discount, **settings)
