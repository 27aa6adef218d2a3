"""The scripts that make the kitchen's data: six things to do, and the orders in which demonstrations do them.

A script is a generator that looks at the kitchen whenever an action is asked of it. Waypoints are relative to handles
as they stand at that moment; they were found by trying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from dr3.collect.kitchen_arm import Arm, Floats
from dr3.envs.kitchen import KITCHEN_TASKS, Demonstrations

Script = Iterator[Floats]

NOISE = 0.1  # standard deviation of what is added to the velocity of each joint
AIM = 0.004  # m, the standard deviation of where a demonstration takes hold, along each axis
ASIDE = -0.6  # rad, a twist of the hand; level and so low, its last joint would be at its limit
LOW = 2.1  # m; higher up any bend will do
HINGE = np.array([-1.128, 0.455, 1.792])  # of the microwave's door
LEAD = 0.55  # rad, how far the hand is turned ahead of the knob it holds
SPEED = (0.06, 0.10)  # m a step; each demonstration has its own
TRIES = 2  # for one thing; who has failed goes back and tries again, once
WHOLE = 0.2  # of the partial demonstrations, how many do the whole task
OPEN, SHUT = 0.7, -0.7  # velocities of the fingers
LIMIT = 0.95  # no action is at its bounds, where a squashed policy has no density
BACK = np.array([0.0, -0.15, 0.0])  # towards the robot


@dataclass(frozen=True)
class Hand:
    """An arm as one demonstration uses it."""

    arm: Arm
    speed: float
    aim: Floats

    @classmethod
    def draw(cls, arm: Arm, random: np.random.Generator) -> Hand:
        return cls(arm, random.uniform(*SPEED), random.normal(0, AIM, 3))

    def to(self, target: Floats, *, fingers: float, tries: int, near: float = 0.02, twist: float = 0.0) -> Script:
        """Until it is near, `tries` steps at most."""
        for _ in range(tries):
            yield self.arm.towards(target, fingers=fingers, speed=self.speed, twist=twist)
            if np.linalg.norm(self.arm.hand - target) < near:
                break

    def until(
        self, task: str, target: Floats, *, fingers: float, tries: int, enough: float, twist: float = 0.0
    ) -> Script:
        """Until the task is done and a little more: the distance that counts is `enough`."""
        for action in self.to(target, fingers=fingers, tries=tries, twist=twist):
            if self.arm.world.away(task) < enough:
                break
            yield action

    def home(self) -> Script:
        """To the posture of rest: an arm that came another way may be bent so that the next thing is out of reach."""
        for _ in range(25):
            action, farthest = self.arm.home()
            if farthest < 0.35 or self.arm.hand[2] > LOW:
                break
            yield action

    def stay(self, *, fingers: float, steps: int, twist: float = 0.0) -> Script:
        here = self.arm.hand
        yield from self.to(here, fingers=fingers, tries=steps, near=0, twist=twist)


def _off(right: float, ahead: float, up: float) -> Floats:
    return np.array([right, ahead, up])


def microwave(hand: Hand) -> Script:
    """Take the door by its handle and pull it along its arc, never far ahead of it; let go."""
    arm = hand.arm
    handle = arm.place("microhandle_site") + hand.aim
    yield from hand.to(handle + BACK, fingers=OPEN, tries=25)
    yield from hand.to(handle + _off(0.0, 0.01, 0.0), fingers=OPEN, tries=12)
    yield from hand.stay(fingers=SHUT, steps=4)
    for _ in range(35):
        if arm.world.away("microwave") < 0.15:
            break
        now = arm.place("microhandle_site")
        east, north, _ = now - HINGE
        along = np.array([north, -east, 0.0]) / np.hypot(east, north)
        yield arm.towards(now + hand.aim + 0.05 * along, fingers=SHUT, speed=hand.speed)
    yield from hand.stay(fingers=OPEN, steps=3)
    yield from hand.to(arm.hand + _off(0.07, -0.10, 0.03), fingers=OPEN, tries=8)


def kettle(hand: Hand) -> Script:
    """Push it towards the burner behind with both fingers, wide open, until it counts as there.

    That is half of the way. Pushed on, it turns, and a turn counts as much as a way.
    """
    body = hand.arm.place("kettle_site") + hand.aim - _off(0.0, 0.0, 0.145)
    yield from hand.to(body + _off(0.0, -0.25, 0.06), fingers=OPEN, tries=25, near=0.03, twist=ASIDE)
    yield from hand.to(body + _off(0.0, -0.20, 0.0), fingers=OPEN, tries=15, near=0.03, twist=ASIDE)
    push = body + _off(0.03, 0.22, 0.0)
    yield from hand.until("kettle", push, fingers=OPEN, tries=40, enough=0.25, twist=ASIDE)
    yield from hand.to(hand.arm.hand + _off(0.0, -0.10, 0.03), fingers=OPEN, tries=8, near=0.04, twist=ASIDE)


def light_switch(hand: Hand) -> Script:
    """Push its lever to the left with the closed hand."""
    lever = np.array([-0.37, 0.63, 2.30]) + hand.aim
    yield from hand.to(lever + _off(0.07, -0.18, 0.0), fingers=SHUT, tries=30, near=0.03)
    yield from hand.to(lever + _off(0.07, 0.0, 0.0), fingers=SHUT, tries=15)
    yield from hand.to(lever + _off(-0.08, 0.0, 0.0), fingers=SHUT, tries=12, near=0.03)
    yield from hand.to(hand.arm.hand + BACK, fingers=SHUT, tries=10, near=0.03)


def slide_cabinet(hand: Hand) -> Script:
    """Push its handle to the right with the closed hand."""
    handle = hand.arm.place("slide_site") + hand.aim + _off(0.0, 0.023, -0.04)
    yield from hand.to(handle + _off(-0.07, -0.18, 0.0), fingers=SHUT, tries=30, near=0.03)
    yield from hand.to(handle + _off(-0.07, 0.0, 0.0), fingers=SHUT, tries=15)
    yield from hand.until("slide cabinet", handle + _off(0.32, 0.0, 0.0), fingers=SHUT, tries=30, enough=0.1)
    yield from hand.to(hand.arm.hand + BACK, fingers=SHUT, tries=10, near=0.03)


def bottom_burner(hand: Hand) -> Script:
    return _turn_knob(hand, np.array([-0.256, 0.64, 2.226]), "bottom burner")


def top_burner(hand: Hand) -> Script:
    return _turn_knob(hand, np.array([-0.256, 0.64, 2.340]), "top burner")


def _turn_knob(hand: Hand, knob: Floats, task: str) -> Script:
    """Take its bar and turn, further than it is by half a radian, until it has turned enough."""
    knob = knob + hand.aim
    yield from hand.to(knob + BACK, fingers=OPEN, tries=30)
    held = knob + _off(0.0, -0.033, 0.0)
    yield from hand.to(held, fingers=OPEN, tries=12)
    yield from hand.stay(fingers=SHUT, steps=3)
    start = hand.arm.world.away(task)
    for _ in range(40):
        turned = start - hand.arm.world.away(task)
        yield hand.arm.towards(held, fingers=SHUT, speed=hand.speed, twist=turned + LEAD)
        if hand.arm.world.away(task) < 0.2:
            break
    yield from hand.stay(fingers=OPEN, steps=3)
    yield from hand.to(knob + BACK, fingers=OPEN, tries=10, near=0.03)


SKILLS: dict[str, Callable[[Hand], Script]] = {  # in the order in which demonstrations do them, as people's did
    "microwave": microwave,
    "kettle": kettle,
    "bottom burner": bottom_burner,
    "top burner": top_burner,
    "light switch": light_switch,
    "slide cabinet": slide_cabinet,
}


def order(kind: Demonstrations, random: np.random.Generator) -> tuple[str, ...]:
    """Which four things a demonstration does, and in which order.

    complete: the task's, all of them. partial: any four, but a fifth of the demonstrations do the task's. mixed: any
    four, but never the task's: who wants to do the task must put parts together.
    """
    whole = tuple(task for task in SKILLS if task in KITCHEN_TASKS[kind])
    others = [four for four in combinations(SKILLS, 4) if four != whole]
    if kind == "complete" or (kind == "partial" and random.random() < WHOLE):
        return whole
    return others[random.integers(len(others))]


def do(arm: Arm, tasks: tuple[str, ...], random: np.random.Generator, tried: list[str] | None = None) -> Script:
    """One thing after the other; the names of those that were tried are added to `tried`."""
    hand = Hand.draw(arm, random)
    for task in tasks:
        if tried is not None:
            tried.append(task)
        for _ in range(TRIES):
            yield from SKILLS[task](hand)
            yield from hand.home()
            if arm.world.done(task):
                break


def solve(world: Any, random: np.random.Generator) -> Script:
    """All four things of a world, then stillness."""
    arm = Arm(world)
    yield from do(arm, tuple(task for task in SKILLS if task in world.tasks), random)
    while True:
        yield np.zeros(9)


def act(script: Script, random: np.random.Generator) -> NDArray[np.float32] | None:
    """The script's next action with noise; None once it is over."""
    wanted = next(script, None)
    if wanted is None:
        return None
    return np.clip(wanted + random.normal(0, NOISE, len(wanted)), -LIMIT, LIMIT).astype(np.float32)


DEMONSTRATIONS: tuple[Demonstrations, ...] = get_args(Demonstrations)
