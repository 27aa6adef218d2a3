"""How many cores this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """The cores of this process's affinity where the system tells (Linux), else all of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
