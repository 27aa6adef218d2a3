from __future__ import annotations

import ctypes
import os
import sys

import pytest

from dr3.envs.screen import draw_without_screen


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """Linux, no screen, nothing chosen; EGL can be loaded."""
    monkeypatch.setattr(sys, "platform", "linux")
    for variable in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.setenv(variable, "")  # so that it is put back as it was
        monkeypatch.delenv(variable)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: None)


def test_without_a_screen_it_is_egl():
    draw_without_screen()
    assert os.environ["MUJOCO_GL"] == "egl"


def test_a_choice_and_a_screen_are_left_alone(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    draw_without_screen()
    assert os.environ["MUJOCO_GL"] == "osmesa"
    monkeypatch.delenv("MUJOCO_GL")
    monkeypatch.setenv("DISPLAY", ":0")
    draw_without_screen()
    assert "MUJOCO_GL" not in os.environ


def test_without_egl_nothing_is_chosen(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    draw_without_screen()
    assert "MUJOCO_GL" not in os.environ
