"""How MuJoCo draws on a machine without a screen."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

from dr3.errors import UserError


def draw_without_screen() -> None:
    """Choose EGL where there is neither a screen nor a choice. Before mujoco is first imported, for all worlds."""
    # Asked for what is not installed, mujoco cannot even be imported; and acting needs no pictures.
    if screenless() and _has_egl():
        os.environ.setdefault("MUJOCO_GL", "egl")


def screenless() -> bool:
    return sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def drawing() -> Generator[None]:
    """Around the first picture of MuJoCo's: what it lacks is said in a sentence."""
    try:
        yield
    except (ImportError, AttributeError, RuntimeError, _fatal()) as error:
        raise UserError(
            "MuJoCo cannot draw here: install EGL (Debian: apt install libegl1 libgl1 libgl1-mesa-dri), or OSMesa "
            f"(libosmesa6) and set MUJOCO_GL=osmesa ({error})."
        ) from error


def _fatal() -> type[Exception]:
    return getattr(sys.modules.get("mujoco"), "FatalError", RuntimeError)


def _has_egl() -> bool:
    try:
        ctypes.CDLL("libEGL.so.1")
    except OSError:
        return False
    return True
