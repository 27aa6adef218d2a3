"""Saying how far a long run is: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from rich.console import Console


def plain_console(*, stderr: bool = False) -> Console:
    """A terminal for words that may come from a file: what stands there in brackets is shown, and is no markup."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False)


class Reporter(Protocol):
    """What training tells while it runs."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None: ...
    def at(self, step: int, *, per_second: float, note: str) -> None: ...
    def say(self, sentence: str) -> None: ...


def reporter(title: str, start: int, steps: int, *, show: bool, unit: str = "updates") -> Reporter:
    if not show:
        return Silent()
    return Bar(title, start, steps, unit) if sys.stderr.isatty() else Lines(title, steps, unit)


class Silent:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def at(self, step: int, *, per_second: float, note: str) -> None:
        pass

    def say(self, sentence: str) -> None:
        pass


class Lines(Silent):
    """One line every few seconds, and one at the end."""

    def __init__(self, title: str, steps: int, unit: str, every: float = 5.0) -> None:
        self.title, self.steps, self.unit, self.every, self.last = title, steps, unit, every, time.monotonic()

    def at(self, step: int, *, per_second: float, note: str) -> None:
        if step < self.steps and time.monotonic() - self.last < self.every:
            return
        self.last = time.monotonic()
        share = 100 * step // max(self.steps, 1)
        print(
            f"{self.title}: {step:,} of {self.steps:,} {self.unit} ({share} %), {per_second:,.0f} {self.unit}/s{note}",
            file=sys.stderr,
            flush=True,
        )

    def say(self, sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)


class Bar(Silent):
    def __init__(self, title: str, start: int, steps: int, unit: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(f"{{task.fields[speed]:,.0f}} {unit}/s{{task.fields[note]}}"),
            TimeRemainingColumn(),
            console=plain_console(stderr=True),
        )
        self.task = self.bar.add_task(title, total=steps, completed=start, speed=0.0, note="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bar.stop()

    def at(self, step: int, *, per_second: float, note: str) -> None:
        self.bar.update(self.task, completed=step, speed=per_second, note=note)

    def say(self, sentence: str) -> None:
        self.bar.console.print(sentence)
