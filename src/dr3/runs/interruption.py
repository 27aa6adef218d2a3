"""Ctrl-C and SIGTERM stop a run between two chunks, with everything saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn


class Interruption:
    """The signal that asked to stop, once one has."""

    signal: int | None = None

    def leave(self) -> NoReturn:
        """End as the signal would have ended it, now that everything is saved: exit code 130 or 143."""
        if self.signal is None or self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + self.signal)


_heard_by_main: list[Interruption] = []  # the innermost `watched` of the main thread is the last


@contextmanager
def watched() -> Generator[Interruption]:
    """Note SIGINT and SIGTERM instead of dying of them; a second one acts as usual.

    Only the main thread may listen: other threads that are watched meanwhile see what it hears.
    """
    if threading.current_thread() is not threading.main_thread():
        yield _heard_by_main[-1] if _heard_by_main else Interruption()
        return
    heard = Interruption()
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, _: object) -> None:
        heard.signal = number
        for each, handler in previous.items():
            signal.signal(each, handler)

    for number in previous:
        signal.signal(number, note)
    _heard_by_main.append(heard)
    try:
        yield heard
    finally:
        _heard_by_main.remove(heard)
        for number, handler in previous.items():
            signal.signal(number, handler)
