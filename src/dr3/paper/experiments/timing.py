"""How long tasks took, kept beside each of them: a run that was stopped and went on adds up."""

from __future__ import annotations

import json
import time
from pathlib import Path

from dr3.sweeps import Ended, Engine

FILE = "seconds.json"


class Timed:
    """An engine that also notes the seconds between the start and the end of each task."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.began = engine, dict[Path, float]()

    def expect(self, tasks: int) -> None:
        self.engine.expect(tasks)

    def has_room(self) -> bool:
        return self.engine.has_room()

    def start(self, folder: Path) -> None:
        self.began[folder] = time.monotonic()
        self.engine.start(folder)

    def ended(self, seconds: float) -> list[Ended]:
        over = self.engine.ended(seconds)
        for one in over:
            self._note(one.folder)
        return over

    def close(self) -> None:
        self.engine.close()
        for folder in list(self.began):
            self._note(folder)

    def _note(self, folder: Path) -> None:
        spent = seconds_of(folder) + time.monotonic() - self.began.pop(folder)
        (folder / FILE).write_text(json.dumps({"seconds": round(spent, 2)}) + "\n")


def seconds_of(folder: Path) -> float:
    """What was noted for a task so far."""
    file = folder / FILE
    return json.loads(file.read_text())["seconds"] if file.exists() else 0.0
