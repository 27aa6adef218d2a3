"""How long tasks took, kept beside each of them: one that was stopped and went on adds up."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dr3.errors import UserError
from dr3.files import read_json, write_json

FILE = "seconds.json"


@contextmanager
def timed(folder: Path) -> Generator[None]:
    """Add the seconds within to those of the task in `folder`. What a worker that is killed was at is not counted."""
    began = time.monotonic()
    try:
        yield
    finally:
        spent = seconds_of(folder) + time.monotonic() - began
        write_json(folder / FILE, {"seconds": round(spent, 2)})


def seconds_of(folder: Path) -> float:
    """What was noted for a task so far; nothing where the note is damaged, which should not be the end of its task.

    Args:
        folder: The folder of the task.
    """
    try:
        return read_json(folder / FILE, seconds=int | float)["seconds"]
    except UserError:
        return 0.0
