"""Where the tasks of a sweep stand: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from dr3.progress import plain_console
from dr3.runs.folder import RunFolder
from dr3.sweeps.task import Job, Task
from dr3.sweeps.work import LOG

# "queued" is handed over, but no worker has begun; "there" was finished before the sweep began.
State = Literal["waiting", "queued", "running", "finished", "there", "failed"]


@dataclass(frozen=True)
class Standing:
    """Where one task stands."""

    name: str
    state: State
    step: int
    steps: int
    note: str = ""

    @classmethod
    def of(cls, title: str, folder: Path, job: Job, state: State, log_size: int, note: str) -> Standing:
        steps = job.steps if isinstance(job, Task) else 0
        if state == "running" and (folder / LOG).stat().st_size == log_size:
            state = "queued"
        step = last_step(RunFolder(folder).metrics) if state == "running" and steps else 0
        return cls(title, state, step, steps, note)

    @property
    def progress(self) -> str:
        if self.state != "running" or not self.steps:
            return ""
        return f"{self.step:,} of {self.steps:,} updates ({100 * self.step // self.steps} %)"


def last_step(metrics: Path, *, tail: int = 1 << 14) -> int:
    """The step of the last whole line; lines are far shorter than `tail` bytes."""
    if not metrics.exists():
        return 0
    with metrics.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - tail))
        lines = file.read().split(b"\n")
    try:
        return int(json.loads(lines[-2])["step"]) if len(lines) > 1 else 0
    except (ValueError, TypeError, KeyError):  # damaged: the task itself will say so
        return 0


class Board(Protocol):
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None: ...
    def show(self, standings: list[Standing]) -> None: ...
    def say(self, sentence: str) -> None: ...


def board(show: bool) -> Board:
    if not show:
        return SilentBoard()
    return LiveTable() if sys.stderr.isatty() else BoardLines()


class SilentBoard:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def show(self, standings: list[Standing]) -> None:
        pass

    def say(self, sentence: str) -> None:
        pass


class BoardLines(SilentBoard):
    """A line whenever a task begins or ends, and now and then one on all that are running."""

    def __init__(self, every: float = 30.0) -> None:
        self.every, self.last, self.states = every, time.monotonic(), dict[str, State]()

    def show(self, standings: list[Standing]) -> None:
        for one in standings:
            if one.state not in ("waiting", "queued", self.states.get(one.name)):
                self.say(f"{one.name}: {one.state}" + (f" ({one.note})" if one.note else ""))
            self.states[one.name] = one.state
        if time.monotonic() - self.last > self.every:
            self.last = time.monotonic()
            self.say(counts(standings))
            for one in standings:
                if one.progress:
                    self.say(f"{one.name}: {one.progress}")

    def say(self, sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)


class LiveTable(SilentBoard):
    """The tasks that are running or have failed, and how many there are of the others."""

    def __init__(self) -> None:
        from rich.live import Live

        self.live = Live(console=plain_console(stderr=True), refresh_per_second=4)

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.live.stop()

    def show(self, standings: list[Standing]) -> None:
        # A table that is taller than the terminal would flicker.
        self.live.update(table(standings, rows=max(1, self.live.console.height - 6)))

    def say(self, sentence: str) -> None:
        self.live.console.print(sentence)


def table(standings: list[Standing], *, rows: int) -> Any:
    from rich import box
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    grid = Table("task", "state", "", "", box=box.SIMPLE_HEAD, caption=counts(standings), caption_justify="left")
    shown = [one for one in standings if one.state in ("running", "failed")]
    for one in shown[:rows]:
        bar = ProgressBar(total=one.steps, completed=one.step, width=20) if one.progress else ""
        grid.add_row(one.name, one.state, bar, one.progress or one.note)
    return grid


def counts(standings: list[Standing]) -> str:
    """`3 finished, 2 running, 7 waiting`."""
    number = Counter(one.state for one in standings)
    words = {"there": "were there"}
    order = ("there", "finished", "running", "queued", "waiting", "failed")
    return ", ".join(f"{number[state]} {words.get(state, state)}" for state in order if number[state])
