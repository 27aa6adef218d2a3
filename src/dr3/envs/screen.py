"""How MuJoCo draws on a machine without a screen."""

from __future__ import annotations

import os
import sys


def draw_without_screen() -> None:
    """Choose EGL where there is neither a screen nor a choice. Before mujoco is first imported, for all worlds."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("MUJOCO_GL", "egl")
