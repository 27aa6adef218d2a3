"""The same function of many things, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

Asked = TypeVar("Asked")
Made = TypeVar("Made")


def in_processes(function: Callable[[Asked], Made], asked: Iterable[Asked], workers: int) -> Generator[Made]:
    """function(one) for each, once it is done, in whatever order; with one worker in this process, one after the other.

    Things are asked for as they are needed, so there may be endlessly many: close the generator to stop.
    """
    if workers <= 1:
        yield from map(function, asked)
        return
    # Fresh processes: a copy of one that has drawn shares its connection to the driver.
    fresh = multiprocessing.get_context("spawn")
    with safe_path(), ProcessPoolExecutor(workers, mp_context=fresh, initializer=_leave_signals_to_parent) as pool:
        ahead = iter(asked)
        # No more than are made at once: who stops waits only for these.
        waiting = {pool.submit(function, one) for one in islice(ahead, workers)}
        while waiting:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            waiting |= {pool.submit(function, one) for one in islice(ahead, len(ready))}
            for future in ready:
                yield future.result()


@contextmanager
def safe_path() -> Generator[None]:
    """Python's own way to start such a process has the current folder first on its path: somebody's pickle.py."""
    former = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        os.environ.pop("PYTHONSAFEPATH")
        if former is not None:
            os.environ["PYTHONSAFEPATH"] = former


def _leave_signals_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
