"""The D4RL family: D4RL's files at `paper` scale; data that are made here at `laptop` and `smoke`.

AntMaze's data come from a walker that learned here, with PointMaze beside it as the quick one; replays of an online SAC
on Hopper, Walker2d and Ant stand in for D4RL's, which are such replays too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dr3.methods import Method
from dr3.paper.experiments.declaration import Arm, Design, Folders, Keeping, Scale, Scoring
from dr3.regularizers import DR3
from dr3.sweeps import Preparation, Task


@dataclass(frozen=True)
class World:
    """Where policies are tried and what they learn from, a file under the data folder with settings behind it."""

    name: str
    file: str
    env: str
    scoring: Scoring
    settings: str = ""
    maker: tuple[Callable[..., Any], dict[str, Any]] | None = None  # what makes the file, and what it is called with
    group: str = ""  # which claim it belongs to, where a scale has several kinds of worlds

    def word(self, folders: Folders) -> str:
        return f"{folders.data / self.file}{self.settings}"

    def preparation(self, folders: Folders) -> Preparation | None:
        if self.maker is None:
            return None
        function, arguments = self.maker
        asked = str(folders.data / self.file)
        return Preparation(asked, function, {**arguments, "out": asked})


@dataclass(frozen=True)
class Setup:
    """One scale: worlds, the base method, how long and how often.

    `variants` are other forms of the base method, each a group of its own: {group: method}.
    """

    worlds: tuple[World, ...]
    method: Method
    steps: int
    seeds: int = 3
    evaluations: int = 20
    episodes: int = 10
    note: str = ""
    keeping: Keeping = Keeping()  # noqa: RUF009 (frozen)
    variants: Mapping[str, Method] = field(default_factory=dict)


@dataclass(frozen=True)
class WithAndWithout:
    """A design: one method with and without DR3. At a scale that has no setup, `blocked` says why."""

    base: str
    regularizer: DR3 | None
    setups: Mapping[Scale, Setup]
    blocked: Mapping[Scale, str] = field(default_factory=dict)

    def __call__(self, scale: Scale, folders: Folders) -> Design:
        if scale in self.blocked:
            return Design(blocked=self.blocked[scale])
        setup = self.setups[scale]
        made = {world.name: world.preparation(folders) for world in setup.worlds}
        arms = [
            Arm(
                label,
                world.name,
                _tasks(setup, method, world, regularizer, made[world.name], folders),
                world.scoring,
                group or world.group,
                (setup.keeping,) * setup.seeds,
            )
            for group, method in (setup.variants or {"": setup.method}).items()
            for world in setup.worlds
            for label, regularizer in ((self.base, None), (f"{self.base} + DR3", self.regularizer))
        ]
        unique = {one.name: one for one in made.values() if one is not None}
        return Design(tuple(arms), preparations=tuple(unique.values()), note=setup.note)


def _tasks(
    setup: Setup,
    method: Method,
    world: World,
    regularizer: DR3 | None,
    preparation: Preparation | None,
    folders: Folders,
) -> tuple[Task, ...]:
    """One for each seed: evaluations in these worlds take a while."""
    return tuple(
        Task(
            world.word(folders),
            method,
            (regularizer,),
            (seed,),
            steps=setup.steps,
            env=world.env,
            episodes=setup.episodes,
            evaluate_every=max(1, setup.steps // setup.evaluations),
            metrics_every=max(1, setup.steps // (3 * setup.evaluations)),
            needs=() if preparation is None else (preparation.name,),
            alias=folders.alias(world.word(folders)),
        )
        for seed in range(setup.seeds)
    )
