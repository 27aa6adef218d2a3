"""A sweep from its first task to its last: finished tasks are left alone, failures are reported, the others go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from dr3.errors import UserError
from dr3.files import check_folder, open_to_append, refuse_link
from dr3.runs import Runs
from dr3.runs.interruption import watched
from dr3.sweeps.board import Standing, State, board
from dr3.sweeps.engine import Engine
from dr3.sweeps.local import Local
from dr3.sweeps.task import Job, Task, write_record
from dr3.sweeps.work import LOG

SECONDS_PER_LOOK = 0.25  # how long Ctrl-C may wait, and how often the table is drawn


@dataclass(frozen=True)
class Failure:
    """Why a task has no result, and the log that tells more; None where it was not begun."""

    reason: str
    log: Path | None

    def __str__(self) -> str:
        log = "" if self.log is None else f" Its log: {self.log}"
        return f"{self.reason.rstrip('.')}.{log}"


@dataclass(frozen=True)
class SweepResult:
    """A sweep that has come to its end."""

    out: Path
    jobs: tuple[Job, ...]
    failures: dict[str, Failure]

    @property
    def finished(self) -> list[Task]:
        """The populations that are there."""
        return [job for job in self.jobs if isinstance(job, Task) and job.name not in self.failures]

    def runs(self, task: Task) -> Runs:
        return Runs(self.out / task.name)


def run_tasks(
    jobs: Sequence[Job],
    out: str | Path,
    *,
    engine: Engine | None = None,
    show: bool = True,
    titles: Mapping[str, str] | None = None,
) -> SweepResult:
    """Carry out all `jobs`, each in the folder of its name under `out`; those that are finished there are left alone.

    Of those whose needs are met, the first in `jobs` comes first. A job that fails for good is in the outcome's
    `failures`, with all that need it; the others go on. Ctrl-C or SIGTERM lets the workers save and then stops; the
    same call goes on from there.

    Args:
        jobs: Tasks and preparations.
        out: The folder of the sweep.
        engine: What carries them out; None is a worker process per core.
        show: Show where they stand, on stderr.
        titles: By a task's name what it is called there, where that says more.
    """
    check_folder(Path(out))
    return _Sweep(jobs, Path(out), Local() if engine is None else engine, titles or {}).run(show)


class _Sweep:
    def __init__(self, jobs: Sequence[Job], out: Path, engine: Engine, titles: Mapping[str, str]) -> None:
        self.jobs = {job.name: job for job in jobs}
        self.out, self.engine, self.titles = out, engine, titles
        if len(self.jobs) < len(jobs):
            names = [job.name for job in jobs]
            twice = next(name for name in names if names.count(name) > 1)
            raise UserError(f"Two tasks of the sweep are the same: {twice}.")
        self.place = {name: number for number, name in enumerate(self.jobs)}
        self.order = _in_order(self.jobs)
        self.states: dict[str, State] = dict.fromkeys(self.jobs, "waiting")
        self.log_sizes: dict[str, int] = {}  # when a task was handed over: a log that has grown since is a start
        self.failures: dict[str, Failure] = {}

    def run(self, show: bool) -> SweepResult:
        missing = [name for name, job in self.jobs.items() if not job.finished(self.out / name)]
        self.engine.expect(len(missing))
        ready: list[str] = []
        with board(show) as table, watched() as stopping:
            try:
                while not stopping.signal:
                    ready = sorted([*ready, *self._newly_ready()], key=self.place.__getitem__)
                    while ready and self.engine.has_room():
                        self._start(ready.pop(0))
                    table.show(self._standings())
                    if "running" not in self.states.values():
                        break
                    for folder, error in self.engine.ended(SECONDS_PER_LOOK):
                        self._end(folder.name, error)
                if stopping.signal:
                    table.say("Stopping: every worker saves its progress.")
            finally:
                self.engine.close()
            if stopping.signal:
                table.say("Stopped, everything saved; the same command goes on from there.")
                stopping.leave()
            self._give_up_what_was_never_ready()
            table.show(self._standings())
        return SweepResult(self.out, tuple(self.jobs.values()), self.failures)

    def _newly_ready(self) -> list[str]:
        """Those whose needs are met since the last call and that are not finished already."""
        ready = []
        while names := self.order.get_ready():
            for name in names:
                if self.jobs[name].finished(self.out / name):
                    self.states[name] = "there"
                    self.order.done(name)
                else:
                    ready.append(name)
        return ready

    def _start(self, name: str) -> None:
        folder = self.out / name
        refuse_link(folder)  # the folder of the sweep may come from a stranger
        write_record(folder, self.jobs[name])
        open_to_append(folder / LOG).close()
        self.log_sizes[name] = (folder / LOG).stat().st_size
        self.engine.start(folder)
        self.states[name] = "running"

    def _end(self, name: str, error: str | None) -> None:
        if error is None:
            self.states[name] = "finished"
            self.order.done(name)
        else:
            self.states[name] = "failed"
            self.failures[name] = Failure(error, self.out / name / LOG)

    def _give_up_what_was_never_ready(self) -> None:
        for name, state in self.states.items():
            if state == "waiting":
                self.states[name] = "failed"
                met = ("finished", "there")
                lacking = ", ".join(need for need in self.jobs[name].needs if self.states[need] not in met)
                self.failures[name] = Failure(f"it needs what did not come to be: {lacking}", None)

    def _standings(self) -> list[Standing]:
        notes = {name: failure.reason for name, failure in self.failures.items()}
        return [
            Standing.of(
                self.titles.get(name, name),
                self.out / name,
                job,
                self.states[name],
                self.log_sizes.get(name, 0),
                notes.get(name, ""),
            )
            for name, job in self.jobs.items()
        ]


def _in_order(jobs: dict[str, Job]) -> TopologicalSorter[str]:
    for name, job in jobs.items():
        for need in job.needs:
            if need not in jobs:
                raise UserError(f"{name} needs {need}, which is not in the sweep.")
    order = TopologicalSorter({name: job.needs for name, job in jobs.items()})
    try:
        order.prepare()
    except CycleError as error:
        raise UserError(f"These tasks need each other in a circle: {', '.join(error.args[1])}.") from None
    return order
