"""Cores for a worker of its own: XLA starts a thread for every core it sees, and several workers would fight."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO

_CLAIMED: list[IO[str]] = []  # held until this process ends: the operating system lets go of them, whatever ends it


def claim_cores(count: int) -> None:
    """Keep this process to `count` cores that no other worker of this user on this machine has.

    To be called before JAX makes its first array. Where there are not so many free ones (or the system knows no
    affinity), the process stays on all.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    folder = Path(tempfile.gettempdir()) / f"dr3-cores-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    claimed: dict[int, IO[str]] = {}
    for core in sorted(os.sched_getaffinity(0)):
        if len(claimed) == count:
            break
        lock = (folder / str(core)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            claimed[core] = lock
    if len(claimed) == count:
        os.sched_setaffinity(0, claimed)
        _CLAIMED.extend(claimed.values())
    else:
        for lock in claimed.values():
            lock.close()
