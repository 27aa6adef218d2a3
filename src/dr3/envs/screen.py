"""How MuJoCo draws on a machine without a screen."""

from __future__ import annotations

import ctypes
import os
import sys


def draw_without_screen() -> None:
    """Choose EGL where there is neither a screen nor a choice. Before mujoco is first imported, for all worlds."""
    # Asked for what is not installed, mujoco cannot even be imported; and acting needs no pictures.
    if screenless() and _has_egl():
        os.environ.setdefault("MUJOCO_GL", "egl")


def screenless() -> bool:
    return sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _has_egl() -> bool:
    try:
        ctypes.CDLL("libEGL.so.1")
    except OSError:
        return False
    return True
