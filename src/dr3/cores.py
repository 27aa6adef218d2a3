"""How many cores this process may use, cores of its own for a worker, and how much memory the machine has.

XLA starts a thread for every core it sees: several workers would fight for them.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

_CLAIMED: list[int] = []  # files held until this process ends: the system lets go of them, whatever ends it


def available_cores() -> int:
    """The cores of this process's affinity where the system tells (Linux), else all of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine_memory() -> int:
    """Bytes; without a limit where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 2**63


def claim_cores(count: int) -> None:
    """Keep this process to `count` cores that no other worker of this user on this machine has.

    To be called before JAX makes its first array. Where there are not so many free ones (or the system knows no
    affinity), the process stays on all.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    folder = _own_folder(Path(tempfile.gettempdir()) / f"dr3-cores-{os.getuid()}")
    if folder is None:
        return
    claimed: dict[int, int] = {}
    for core in sorted(os.sched_getaffinity(0)):
        if len(claimed) == count:
            break
        if (held := _held(folder, core)) is not None:
            claimed[core] = held
    os.close(folder)
    if len(claimed) == count:
        os.sched_setaffinity(0, claimed)
        _CLAIMED.extend(claimed.values())
    else:
        for held in claimed.values():
            os.close(held)


def _own_folder(path: Path) -> int | None:
    """The folder, opened, if it is this user's alone: the name can be guessed, and all may write where it lies."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    found = os.fstat(folder)
    if found.st_uid == os.getuid():
        if stat.S_IMODE(found.st_mode) != 0o700:  # made by an older version
            os.fchmod(folder, 0o700)
        return folder
    os.close(folder)
    return None


def _held(folder: int, core: int) -> int | None:
    """The file of a core, held; None where another process holds it, or it is something else."""
    import fcntl  # where cores can be claimed, there is this module

    try:
        file = os.open(str(core), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file
