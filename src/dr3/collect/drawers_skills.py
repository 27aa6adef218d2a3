"""What the drawers' data is made of: skills, each with the start it is shown from, and what counts as its success.

Prior data shows the parts that lead to the open drawer, without reward; task data shows the grasp out of an open
drawer, with it. No episode shows the whole way: putting it together is what COG is about (appendix E).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dr3.collect.drawers_policies import FLIP, MISSED, Script, carry_block, close_drawer, open_drawer, take_ball
from dr3.envs.drawers import CLOSED, OPENED
from dr3.envs.drawers_scene import Scene

Infos = list[dict[str, Any]]


@dataclass(frozen=True)
class Skill:
    """A suboptimal script: half of the time, those that can do the wrong thing do it."""

    name: str
    start: str  # a task of DRAWERS
    script: Callable[[Scene, np.random.Generator], Script]
    succeeded: Callable[[Infos], bool]


def _flips(random: np.random.Generator, share: float = FLIP) -> bool:
    return bool(random.random() < share)


OPEN = Skill(
    "open the bottom drawer",
    "drawers/closed",
    lambda scene, random: open_drawer(scene, "bottom", wrong=_flips(random)),
    lambda infos: infos[-1]["bottom"] > OPENED,
)
CLOSE = Skill(
    "close the top drawer",
    "drawers/blocked-by-drawer",
    lambda scene, random: close_drawer(scene, "top", wrong=_flips(random)),
    lambda infos: infos[-1]["top"] < CLOSED,
)
CARRY = Skill(
    "grasp the block, and put it down somewhere",
    "drawers/blocked-by-object",
    lambda scene, random: carry_block(scene, random, wrong=_flips(random)),
    lambda infos: any(info["block_lifted"] for info in infos) and infos[-1]["block_moved"],
)
GRASP = Skill(
    "grasp the ball, and lift it out of the drawer",
    "drawers/open",
    lambda scene, random: take_ball(scene, random, wrong=_flips(random, MISSED)),
    lambda infos: infos[-1]["success"],
)
PRIOR = {
    "drawers/blocked-by-drawer": (CLOSE, OPEN),
    "drawers/blocked-by-object": (CARRY, OPEN),
    "drawers/closed": (OPEN,),
}


def solve(task: str, scene: Scene, random: np.random.Generator) -> Script:
    """The whole way of a task, with nothing done wrong on purpose. It is in no data; it is there to be looked at."""
    if task == "drawers/blocked-by-drawer":
        yield from close_drawer(scene, "top")
    if task == "drawers/blocked-by-object":
        yield from carry_block(scene, random)
    if task != "drawers/open":
        yield from open_drawer(scene, "bottom")
    yield from take_ball(scene, random)
