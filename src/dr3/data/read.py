"""One door for every format."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dr3.data.cog import read_cog
from dr3.data.npz import read_npz
from dr3.data.transitions import Transitions
from dr3.errors import UserError

READERS: dict[str, Callable[..., Transitions]] = {
    ".npz": read_npz,
    ".npy": read_cog,
}


def read(path: str | os.PathLike[str], *, discount: float = 0.99) -> Transitions:
    """Read logged data; the ending of the name says how.

    `discount` is for the Monte-Carlo returns where the file holds none.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in READERS:
        ending = f"the ending {suffix!r}" if suffix else "a name without an ending"
        raise UserError(f"{path}: {ending} says nothing about the format; what can be read is {', '.join(READERS)}.")
    return READERS[suffix](path, discount=discount)
