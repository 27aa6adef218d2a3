"""The engine without workers: tasks one after another in this very process, for small ones."""

from __future__ import annotations

from pathlib import Path

from dr3.sweeps.engine import Ended
from dr3.sweeps.work import work


class InProcess:
    """Carries out a task as soon as it is started. Programs that one task has compiled serve the next."""

    def __init__(self) -> None:
        self.over: list[Ended] = []

    def expect(self, tasks: int) -> None:
        pass

    def has_room(self) -> bool:
        return not self.over

    def start(self, folder: Path) -> None:
        self.over.append(Ended(folder, work(folder, save_every=None)))

    def ended(self, seconds: float) -> list[Ended]:
        over, self.over = self.over, []
        return over

    def close(self) -> None:
        self.over = []
