"""How long tasks took, kept beside each of them: one that was stopped and went on adds up."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

FILE = "seconds.json"


@contextmanager
def timed(folder: Path) -> Generator[None]:
    """Add the seconds within to those of the task in `folder`. What a worker that is killed was at is not counted."""
    began = time.monotonic()
    try:
        yield
    finally:
        spent = seconds_of(folder) + time.monotonic() - began
        (folder / FILE).write_text(json.dumps({"seconds": round(spent, 2)}) + "\n")


def seconds_of(folder: Path) -> float:
    """What was noted for a task so far."""
    file = folder / FILE
    return json.loads(file.read_text())["seconds"] if file.exists() else 0.0
