"""What a sweep is made of: populations to train, and files to make before that."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pkgutil
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dr3.data import files_of, load
from dr3.errors import UserError
from dr3.files import read_json, write_json
from dr3.hyperparameters import from_json, to_json
from dr3.methods import METHODS, Method
from dr3.notation import spell, split
from dr3.regularizers import REGULARIZERS, Regularizer
from dr3.runs.config import RunConfig
from dr3.runs.folder import RunFolder
from dr3.runs.member import Member, population
from dr3.training import train

RECORD = "task.json"


@dataclass(frozen=True)
class Task:
    """One population, which is one run folder. Its fields are `dr3.train`'s, its data a word for `dr3.load`.

    Two tasks with the same content have the same name, so they find the same folder. The number of steps is not part
    of the name: more of them lengthen the run that is there. `needs` names what must be finished before it. `alias` is
    what its name calls the data: with one, a task has the same name wherever its data lie.
    """

    data: str
    method: Method
    regularizers: tuple[Regularizer | None, ...] = (None,)
    seeds: tuple[int, ...] = (0,)
    steps: int = 100_000
    env: str | None = "auto"
    episodes: int = 10
    metrics_every: int | None = None
    evaluate_every: int | None = None
    init_from: str | None = None
    needs: tuple[str, ...] = ()
    alias: str = ""

    @cached_property
    def name(self) -> str:
        lasting = {key: value for key, value in self.to_json().items() if key not in ("steps", "needs", "alias")}
        if self.alias:
            start = self.init_from
            lasting |= {"data": self.alias, "init_from": None if start is None else Path(start).name}
        regularizer = self.regularizers[0]
        alone = len(self.regularizers) == 1 and regularizer is not None
        method = f"{self.method.name}+{spell(regularizer)}" if alone else self.method.name
        return _slug(f"{method}-{Path(split(self.data)[0]).stem}-{_digest(lasting)}")

    @property
    def members(self) -> list[Member]:
        """All that are trained in it, or a UserError where they make no population."""
        return population(self.method, self.regularizers, self.seeds)

    def to_json(self) -> dict[str, Any]:
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        record |= {"method": to_json(self.method), "regularizers": [to_json(one) for one in self.regularizers]}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in record.items()}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Task:
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in record.items()
        }
        fields["method"] = from_json(METHODS, record["method"])
        fields["regularizers"] = tuple(from_json(REGULARIZERS, one) for one in record["regularizers"])
        return cls(**fields)

    def finished(self, folder: Path) -> bool:
        """Whether the run in `folder` is this one and has come to its end."""
        run = RunFolder(folder)
        if not run.status.exists() or not run.config.exists():
            return False
        try:
            status = read_json(run.status, finished=bool, step=int)
            config = RunConfig.read(run.config)
        except UserError:  # damaged: its own task may put that right, or fails with a reason while the others go on
            return False
        return (
            status["finished"]
            and status["step"] == self.steps
            and config.data.source == self.data
            and list(config.members) == self.members
        )

    def run(self, folder: Path, *, save_every: float | None = None, progress: bool = True) -> None:
        """Train it, or go on with what `folder` holds of it."""
        train(
            load(self.data, discount=self.method.discount),
            self.method,
            regularizer=self.regularizers,
            steps=self.steps,
            seeds=self.seeds,
            init_from=self.init_from,
            env=self.env,
            episodes=self.episodes,
            out=folder,
            metrics_every=self.metrics_every,
            evaluate_every=self.evaluate_every,
            save_every=save_every,
            progress=progress,
        )


@dataclass(frozen=True)
class Preparation:
    """A file that others learn from, and the call that makes it: a function of some module, with keyword arguments.

    The file being there is what counts as finished, so the function must not leave half of one under that name. `also`
    are files that are there once it is.
    """

    makes: str
    function: Callable[..., Any] | str  # or where it lives, `package.module:function`: imported when it is called
    arguments: dict[str, Any]
    needs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        lasting = {key: value for key, value in self.to_json().items() if key not in ("needs", "also")}
        return _slug(f"prepare-{Path(self.makes).stem}-{_digest(lasting)}")

    @property
    def function_name(self) -> str:
        """`package.module:function`: what a worker finds the function by."""
        if isinstance(self.function, str):
            return self.function
        function: Any = self.function  # a class, or anything else that has a name in a module, does too
        return f"{function.__module__}:{function.__qualname__}"

    def to_json(self) -> dict[str, Any]:
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return record | {"function": self.function_name, "needs": list(self.needs), "also": list(self.also)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Preparation:
        fields: dict[str, Any] = {**record, "needs": tuple(record["needs"]), "also": tuple(record["also"])}
        return cls(**fields)

    def finished(self, folder: Path) -> bool:
        return Path(self.makes).exists()

    def run(self, folder: Path, *, save_every: float | None = None) -> None:
        """Make it, unless a twin has: a worker that was given up may still have been at it."""
        with RunFolder(folder).locked():
            if not self.finished(folder):
                named = isinstance(self.function, str)
                function: Any = pkgutil.resolve_name(self.function_name) if named else self.function
                function(**self.arguments)
        if not self.finished(folder):
            raise UserError(f"{self.function_name} ended without writing {self.makes}.")


Job = Task | Preparation


def data_of(jobs: Iterable[Job]) -> list[str]:
    """The files and folders that tasks learn from, each once.

    Args:
        jobs: Tasks and preparations.
    """
    return list(dict.fromkeys(file for job in jobs if isinstance(job, Task) for file in files_of(job.data)))


def write_record(folder: Path, job: Job) -> None:
    """Leave word in `folder` of what is to be done in it."""
    write_json(folder / RECORD, {"kind": type(job).__name__, **job.to_json()})


def read_record(folder: Path) -> Job:
    """What is to be done in `folder`. Nothing is imported that it names: it may come from a stranger."""
    record = read_json(folder / RECORD, kind=str)
    kinds: dict[str, type[Task] | type[Preparation]] = {"Task": Task, "Preparation": Preparation}
    try:
        return kinds[record.pop("kind")].from_json(record)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{folder / RECORD} is of no task that this dr3 knows ({error!r}).") from None


def _digest(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:8]


def _slug(words: str) -> str:
    """Fit for a folder's name on any storage."""
    return re.sub(r"[^A-Za-z0-9.+=_-]+", "_", words)
