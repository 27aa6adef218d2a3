from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageSequence

from dr3.cli import invoke
from dr3.collect.film import film, write_gif
from dr3.envs.drawers_tasks import DRAWERS, DrawerTask
from dr3.errors import UserError


def test_an_episode_of_the_drawers_is_a_gif(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(DRAWERS, "drawers/open", DrawerTask("drawers/open", 4, bottom=1.0))
    out = tmp_path / "open.gif"
    assert invoke(["play", "drawers/open", "--policy", "scripted", "--out", str(out)]) == 0
    assert "4 steps with a return of 0" in capsys.readouterr().out
    with Image.open(out) as picture:
        assert len(list(ImageSequence.Iterator(picture))) == 5
        assert picture.size == (480, 480)


def test_frames_come_back_in_order(tmp_path) -> None:
    frames = [np.full((4, 4, 3), value, np.uint8) for value in (0, 120, 250)]
    write_gif(tmp_path / "grey.gif", frames, 10)
    with Image.open(tmp_path / "grey.gif") as picture:
        shades = [int(np.asarray(frame.convert("L"))[0, 0]) for frame in ImageSequence.Iterator(picture)]
    assert shades == pytest.approx([0, 120, 250], abs=3)


def test_mistakes_are_said_in_a_sentence(tmp_path) -> None:
    with pytest.raises(UserError, match="no world 'Nowhere-v0' that can be drawn"):
        film("Nowhere-v0")
    with pytest.raises(UserError, match=r"written as \.gif"):
        write_gif(tmp_path / "x.mp4", [np.zeros((2, 2, 3), np.uint8)], 10)
    with pytest.raises(UserError, match="RUN@STEP"):
        film("drawers/open", "runs/first")
