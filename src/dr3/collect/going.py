"""What every collector's loop does beside collecting: say how far it is, save now and then, and stop when asked to."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from dr3.progress import Reporter, reporter
from dr3.runs.checkpoints import Checkpoints
from dr3.runs.interruption import Interruption, watched

SECONDS_PER_STATE = 60.0
SECONDS_PER_TELLING = 1.0


class Going:
    """A collection on its way to so many steps."""

    def __init__(self, report: Reporter, stopping: Interruption, made: int, steps: int) -> None:
        self.steps = steps
        self._report, self._stopping = report, stopping
        self._told, self._told_at = made, time.monotonic()
        self._saved_at = self._told_at

    def after(self, made: int, *, note: Callable[[], str], save: Callable[[], None]) -> None:
        """To be called where a state can be saved; it does not come back where Ctrl-C or SIGTERM asked to stop."""
        now, ended, stop = time.monotonic(), made >= self.steps, self._stopping.signal is not None
        if ended or stop or now - self._told_at > SECONDS_PER_TELLING:
            speed = (made - self._told) / max(now - self._told_at, 1e-9)
            self._report.at(min(made, self.steps), per_second=speed, note=note())
            self._told, self._told_at = made, now
        if stop or now - self._saved_at > SECONDS_PER_STATE:
            save()
            self._saved_at = time.monotonic()
        if stop and not ended:
            self._report.say(f"Stopped after {made:,} steps, all saved; the same command goes on from there.")
            self._stopping.leave()


@contextmanager
def going(title: str, made: int, steps: int, *, show: bool) -> Generator[Going]:
    """Go on after the `made` steps that were kept, 0 at the start."""
    with reporter(title, made, steps, show=show, unit="steps") as report, watched() as stopping:
        if made:
            report.say(f"Going on from step {made:,}.")
        yield Going(report, stopping, made, steps)


def newest(states: Checkpoints, like: Any) -> Any:
    """The newest state that is whole, in the structure of `like`; None where there is none."""
    for step in filter(states.whole, reversed(states.steps())):
        with suppress(ValueError):  # damaged all the same
            return states.restore(step, like)
    return None
