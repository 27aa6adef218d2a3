"""The scripted policies that make COG's data: open and close a drawer, take the ball, carry the block elsewhere.

A script is a generator that looks at the scene whenever an action is asked of it. It steers by what the camera does not
show (positions), as COG's scripts do: a step asks for 7 times the way that is left. Its noise is part of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.envs.drawers_scene import Scene

GAIN = 7.0
NOISE = 0.1
LIMIT = 0.9
PRESS = 0.7  # for what counts above 0.5: noise takes it back once in fifty steps
FLIP = 0.5  # how often a suboptimal script does the wrong thing

CARRY = 0.20  # m, the height at which the hand travels
NEAR = 0.012
AIM = 0.003  # m, the standard deviation of where a hand that grasps comes down, along x and y
BESIDE = (0.035, 0.05)  # m, how far from the ball it comes down where it misses
MISSED = 0.25  # how often a suboptimal script does so
CLOSING = 4  # steps: one more than the fingers take
HOLDING = 4  # steps in which the ball is held up, and pays
TRAY = (0.29, 0.28)
TABLE = np.array([[0.06, 0.18], [0.34, 0.38]])

Action = NDArray[np.float64]
Script = Iterator[Action]
Place = Callable[[], NDArray[np.float64]]


def act(script: Script, random: np.random.Generator) -> NDArray[np.float32]:
    """The next action: the script's, with noise on all eight numbers; none of its own once the script is over."""
    return noisy(next(script, _ask()), random)


def noisy(wanted: Action, random: np.random.Generator) -> NDArray[np.float32]:
    return np.clip(wanted + random.normal(0, NOISE, 8), -LIMIT, LIMIT).astype(np.float32)


def open_drawer(scene: Scene, drawer: str, *, wrong: bool = False) -> Script:
    """Reach behind the handle's bar and pull; the `wrong` one pushes."""

    def behind() -> NDArray[np.float64]:
        return scene.handle(drawer) + np.array([0.0, 0.0, -0.015])

    yield from _over(scene, behind)
    yield from _to(scene, behind, tries=10)
    yield from _shove(scene, drawer, -1 if wrong else 1, until=0.97)


def close_drawer(scene: Scene, drawer: str, *, wrong: bool = False) -> Script:
    """Come down before the handle and push; the `wrong` one goes away from it."""

    def before() -> NDArray[np.float64]:
        return scene.handle(drawer) + np.array([0.07, 0.0, -0.008])

    yield from _over(scene, before)
    yield from _to(scene, before, near=0.02, tries=10)
    yield from _shove(scene, drawer, 1 if wrong else -1, until=0.03)


def take_ball(scene: Scene, random: np.random.Generator, *, wrong: bool = False) -> Script:
    """Grasp the ball, lift it, and hold it at home; the `wrong` one closes its fingers beside it."""
    yield from _grasp(scene, "ball", _aim(random, beside=wrong))
    yield from _rise(scene, fingers=-PRESS)
    yield _ask(fingers=-PRESS, home=True)
    if scene.position("ball")[2] > CARRY - 0.1:
        yield from HOLDING * [_ask(fingers=-PRESS)]


def carry_block(scene: Scene, random: np.random.Generator, *, wrong: bool = False) -> Script:
    """Grasp the block and put it into the tray; the `wrong` one puts it down anywhere."""
    place = random.uniform(*TABLE) if wrong else np.array(TRAY) + random.uniform(-0.02, 0.02, 2)
    yield from _grasp(scene, "block", np.append(_aim(random)[:2], 0.035))
    yield from _rise(scene, 0.14, fingers=-PRESS)
    yield from _to(scene, lambda: np.append(place, 0.135), near=0.03, tries=15, fingers=-PRESS)
    yield from CLOSING * [_ask(fingers=PRESS)]
    yield from _rise(scene, fingers=PRESS)
    yield _ask(home=True)


def _shove(scene: Scene, drawer: str, direction: int, *, until: float) -> Script:
    """Along x until the drawer is open or closed so far, then up and home."""
    for _ in range(8):
        if (scene.openness(drawer) - until) * (until - 0.5) > 0:
            break
        yield _ask([direction, 0, 0])
    yield from _rise(scene, scene.handle(drawer)[2] + 0.05)
    yield _ask(home=True)


def _grasp(scene: Scene, thing: str, off: NDArray[np.float64]) -> Script:
    def there() -> NDArray[np.float64]:
        return scene.position(thing) + off

    yield from _over(scene, there, fingers=PRESS)
    yield from _to(scene, there, tries=12, fingers=PRESS)
    yield from CLOSING * [_ask(fingers=-PRESS)]


def _aim(random: np.random.Generator, *, beside: bool = False) -> NDArray[np.float64]:
    """Where the grip is to be, seen from the thing: a little under its centre, or `beside` it."""
    off = random.normal(0, AIM, 2)
    if beside:
        angle = random.uniform(0, 2 * np.pi)
        off = random.uniform(*BESIDE) * np.array([np.cos(angle), np.sin(angle)])
    return np.append(off, -0.012)


def _over(scene: Scene, place: Place, *, fingers: float = 0.0) -> Script:
    """To a point above `place`, at travelling height."""
    yield from _rise(scene, CARRY - 0.05, fingers=fingers)
    yield from _to(scene, lambda: np.append(place()[:2], CARRY), near=0.03, tries=15, fingers=fingers)


def _rise(scene: Scene, height: float = CARRY - 0.03, *, fingers: float = 0.0) -> Script:
    for _ in range(8):
        if scene.grip[2] > height:
            break
        yield _ask([0, 0, LIMIT], fingers=fingers)


def _to(scene: Scene, place: Place, *, near: float = NEAR, tries: int, fingers: float = 0.0) -> Script:
    for _ in range(tries):
        way = place() - scene.grip
        if np.linalg.norm(way) < near:
            break
        yield _ask(GAIN * way, fingers=fingers)


def _ask(move: Any = (0.0, 0.0, 0.0), *, fingers: float = 0.0, home: bool = False) -> Action:
    return np.array([*move, 0.0, 0.0, 0.0, fingers, PRESS if home else 0.0])
