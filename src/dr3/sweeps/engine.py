"""What a sweep asks of the thing that carries out its tasks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol


class Ended(NamedTuple):
    """A task that is over: it finished, or failed for good."""

    folder: Path
    error: str | None


class Engine(Protocol):
    """Carries out tasks, each known by its folder. A worker that dies is replaced, and its task goes on."""

    def expect(self, tasks: int) -> None:
        """So many are to come. Nothing is started yet."""
        ...

    def has_room(self) -> bool: ...

    def start(self, folder: Path) -> None: ...

    def ended(self, seconds: float) -> list[Ended]:
        """What has ended; waits for that at most so long."""
        ...

    def close(self) -> None:
        """Let go of the workers. Those at work save and stop first; a second Ctrl-C does not wait for them."""
        ...
