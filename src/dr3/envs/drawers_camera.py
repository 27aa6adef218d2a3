"""Pictures of a MuJoCo scene without a screen.

MuJoCo draws through EGL (Mesa's, where there is no GPU), OSMesa or a window system; the environment variable MUJOCO_GL
says which. mujoco reads it once, when something imports it for the first time; here it counts whenever a camera is
made, so that a program which has already stepped another world can draw this one.
"""

from __future__ import annotations

import atexit
import os
import weakref
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.envs.screen import draw_without_screen, drawing, screenless
from dr3.errors import UserError

draw_without_screen()

try:
    mujoco: Any = import_module("mujoco")
except ModuleNotFoundError as missing:
    raise UserError("The drawers need MuJoCo: pip install 'dr3[mujoco]'.") from missing


class Camera:
    """Draws square pictures of one size from a camera of the model, with no shadows, reflections or smoothed edges."""

    def __init__(self, model: Any, name: str, size: int) -> None:
        # A buffer of the picture's size: what is not looked at is not drawn.
        model.vis.global_.offwidth = model.vis.global_.offheight = size
        self._model, self._size = model, size
        self._view = mujoco.MjvCamera()
        self._view.type, self._view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, model.camera(name).id
        self._scene, self._option = mujoco.MjvScene(model, maxgeom=200), mujoco.MjvOption()
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[flag] = 0
        self._rectangle = mujoco.MjrRect(0, 0, size, size)
        with drawing():
            self._gl = _context_class()(size, size)
            self._gl.make_current()
            self._context: Any = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        atexit.register(_close, weakref.ref(self))

    def picture(self, data: Any) -> NDArray[np.uint8]:
        """(size, size, 3)."""
        self._gl.make_current()
        mujoco.mjv_updateScene(
            self._model, data, self._option, None, self._view, mujoco.mjtCatBit.mjCAT_ALL, self._scene
        )
        mujoco.mjr_render(self._rectangle, self._scene, self._context)
        pixels = np.empty((self._size, self._size, 3), np.uint8)
        mujoco.mjr_readPixels(pixels, None, self._rectangle, self._context)
        return pixels[::-1].copy()  # the first row is the lowest

    def close(self) -> None:
        if self._context is not None:
            self._gl.make_current()
            self._context.free()
            self._gl.free()
            self._context = None


def _context_class() -> Any:
    asked = os.environ.get("MUJOCO_GL", "egl" if screenless() else "").lower()
    return import_module(f"mujoco.{asked}" if asked in ("egl", "osmesa") else "mujoco.gl_context").GLContext


def _close(camera: weakref.ref[Camera]) -> None:
    """Before mujoco ends EGL at the interpreter's exit: what is freed after that fails noisily."""
    if (still := camera()) is not None:
        still.close()
