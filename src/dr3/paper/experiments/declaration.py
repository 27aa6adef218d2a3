"""What an experiment is made of: worlds, data, methods and regularizers, what is measured, drawn and claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from dr3.sweeps import Job, Preparation, Task

if TYPE_CHECKING:
    from dr3.paper.experiments.evidence import Evidence

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
Verdict = Literal["shows", "does not show", "cannot be compared"]


@dataclass(frozen=True)
class Folders:
    """Where data lies or is made, and where runs go."""

    data: Path
    runs: Path


class Scoring(Protocol):
    """How the returns of a world are normalised."""

    metric: ClassVar[str]
    """What of an evaluation is normalised: returns, or how often it succeeded."""

    def limits(self) -> tuple[float, float]:
        """The returns that count as 0 and as 100."""
        ...


@dataclass(frozen=True)
class Arm:
    """One line of a figure: a method with or without a regularizer in one world. Its runs are the members of `tasks`.

    `group` is what a claim is made about separately: one of the paper's three sizes of Atari data.
    """

    label: str
    world: str
    tasks: tuple[Task, ...]
    scoring: Scoring
    group: str = ""


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
        everything: tuple[Job, ...] = (*self.preparations, *self.sources, *self.tasks)
        return tuple({job.name: job for job in everything}.values())

    @property
    def updates(self) -> int:
        """Of all members together."""
        populations = (job for job in self.jobs if isinstance(job, Task))
        return sum(task.steps * len(task.regularizers) * len(task.seeds) for task in populations)


@dataclass(frozen=True)
class Answer:
    """What came out of one check: whether it holds, in a sentence, with its numbers.

    `reason` says in a few words why it does not hold, for an overview.
    """

    rule: str
    holds: bool
    sentence: str
    numbers: Mapping[str, Any]
    reason: str = ""


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
