"""What an experiment is made of: worlds, data, methods and regularizers, what is measured, drawn and claimed."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from dr3.sweeps import Job, Preparation, Task

if TYPE_CHECKING:
    from dr3.paper.experiments.bundle import Bundle
    from dr3.paper.experiments.evidence import Evidence

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
Verdict = Literal["shows", "does not show", "precondition not met", "cannot be compared"]


@dataclass(frozen=True)
class Folders:
    """Where data lies or is made, and where runs go."""

    data: Path
    runs: Path

    def alias(self, word: str) -> str:
        """What data are called wherever they lie: the word for them without the data folder."""
        return word.replace(f"{self.data}{os.sep}", "")


class Scoring(Protocol):
    """How the returns of a world are normalised."""

    metric: ClassVar[str]
    """What of an evaluation is normalised: returns, or how often it succeeded."""

    def limits(self, bundles: Sequence[Bundle]) -> tuple[float, float]:
        """The returns that count as 0 and as 100, of the world that these bundles are about."""
        ...


@dataclass(frozen=True)
class Keeping:
    """What is tried once more of a finished run, for its bundle of evidence.

    `judged` are the checkpoints, as shares of training, that are tried in `episodes` episodes where training took
    fewer. `layers`: whether layers are put back to their initial values. `replay` is the file that scores are
    normalised by.
    """

    judged: tuple[float, ...] = (1.0,)
    episodes: int = 1
    layers: bool = False
    replay: str = ""

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"judged": list(self.judged)}


@dataclass(frozen=True)
class Arm:
    """One line of a figure: a method with or without a regularizer in one world. Its runs are the members of `tasks`.

    `group` is what a claim is made about separately: one of the paper's three sizes of Atari data.
    """

    label: str
    world: str
    tasks: tuple[Task, ...]  # or `bundle.Online`, which has their names, steps and seeds
    scoring: Scoring
    group: str = ""
    keeping: tuple[Keeping, ...] = ()  # by task; by default what training left is enough


@dataclass(frozen=True)
class Design:
    """All that is trained for an experiment at one scale.

    `sources` are runs that others start from. `note` says what stands in for what. Where `blocked` gives a reason,
    there is nothing to train and nothing can be compared.
    """

    arms: tuple[Arm, ...] = ()
    sources: tuple[Task, ...] = ()
    preparations: tuple[Preparation, ...] = ()
    note: str = ""
    blocked: str | None = None

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """Every population once."""
        return tuple({task.name: task for arm in self.arms for task in arm.tasks}.values())

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """Everything once, what others need first."""
        trained = [task for task in self.tasks if isinstance(task, Task)]
        everything: tuple[Job, ...] = (*self.preparations, *self.sources, *trained)
        return tuple({job.name: job for job in everything}.values())

    @cached_property
    def keeping(self) -> dict[str, Keeping]:
        """By the name of a task that is judged, what is tried once more for its evidence."""
        return {
            task.name: keeping
            for arm in self.arms
            for task, keeping in zip(arm.tasks, arm.keeping or [Keeping()] * len(arm.tasks), strict=True)
        }

    @property
    def updates(self) -> int:
        """Of all members together."""
        populations = (job for job in self.jobs if isinstance(job, Task))
        return sum(task.steps * len(task.regularizers) * len(task.seeds) for task in populations)


@dataclass(frozen=True)
class Cell:
    """What came out of a check in one world."""

    place: str
    verdict: Verdict
    sentence: str


@dataclass(frozen=True)
class Answer:
    """What came out of one check in one group of worlds: a verdict, in a sentence, with its numbers.

    `reason` says in a few words why it does not show, for an overview. `cells` are the same check world by world.
    """

    rule: str
    verdict: Verdict
    sentence: str
    numbers: Mapping[str, Any]
    reason: str = ""
    cells: tuple[Cell, ...] = ()
    group: str = ""

    @property
    def shows(self) -> bool:
        return self.verdict == "shows"


@dataclass(frozen=True)
class Row:
    """A number of ours beside the paper's, as they would be printed; None where there is none."""

    what: str
    paper: str | None
    ours: str | None


Check = Callable[["Evidence"], Answer]
Numbers = Callable[["Evidence"], Sequence[Row]]
# Draws to a PNG; the caption says how the picture came to be.
Picture = Callable[["Evidence", Path, str], None]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper. `printed` is what the paper says came out, with its numbers.

    `needs` says, by scale, what must be there or is made first. One without a `design` needs no runs: its checks and
    numbers are about the paper alone.
    """

    id: str
    label: str
    title: str
    claim: str
    printed: str
    checks: tuple[Check, ...]
    design: Callable[[Scale, Folders], Design] | None = None
    picture: Picture | None = None
    numbers: Numbers | None = None
    needs: Mapping[Scale, str] | None = None

    def at(self, scale: Scale, folders: Folders) -> Design:
        return Design() if self.design is None else self.design(scale, folders)
