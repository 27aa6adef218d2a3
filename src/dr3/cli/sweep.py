"""`dr3 sweep FILE.toml`"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from dr3.cli.parsing import parse
from dr3.errors import UserError
from dr3.progress import plain_console

if TYPE_CHECKING:
    from dr3.stats import Interval
    from dr3.sweeps import Engine, Job, SummaryRow, SweepResult

ABOUT = """\
Train every method on all data with every regularizer and every seed, as a file describes it.

an example of FILE.toml:

  steps = 5000
  seeds = 3                                # 0, 1, 2; or a list
  data = ["grid16smoothobs", "grid16randomsparse:size=1024"]
  regularizers = ["none", "dr3", "norm:0.01"]
  coefficients = [0.01, 0.1]               # of those that name none

  [methods.dqn]
  hidden = [64, 64]
  target_period = [10, 100]                # a list of values: each of them

  [methods.cql]

examples:

dr3 sweep FILE.toml --dry-run

dr3 sweep FILE.toml --out runs/mine

dr3 sweep FILE.toml --out /shared/mine --engine ray --address auto --cpus 4"""


@dataclass(frozen=True)
class EngineChoice:
    """Where the tasks run."""

    engine: Literal["local", "ray"] = "local"
    """local: a worker process per core of this machine. ray: a Ray cluster (pip install 'dr3[ray]')."""

    workers: int | None = None
    """local: so many workers, which share the cores. On a GPU, 1."""

    address: str | None = None
    """ray: the cluster, as ray.init takes it (auto, HOST:PORT, ray://…); by default this machine."""

    cpus: int | None = None
    """ray: cores of each task, by default 1."""

    gpus: float | None = None
    """ray: GPUs of each task, or the part of one; by default none."""

    retries: int = 3
    """How often a task whose worker died goes on from its last saved state."""

    save_every: float | None = None
    """Seconds between two saved states, by default 30: what a death may cost."""

    def build(self) -> Engine:
        from dr3.sweeps import Local, OnRay

        lasting: dict[str, Any] = {"retries": self.retries, "save_every": self.save_every}
        of_ray: dict[str, Any] = {"address": self.address, "cpus": self.cpus, "gpus": self.gpus}
        of_ray = {name: value for name, value in of_ray.items() if value is not None}
        if self.engine == "local":
            for name in of_ray:
                raise UserError(f"--{name} belongs to the engine ray: add --engine ray.")
            return Local(self.workers, **lasting)
        if self.workers is not None:
            raise UserError("--workers belongs to the engine local; on ray --cpus says how many cores a task has.")
        return OnRay(**of_ray, **lasting)


@dataclass(frozen=True)
class Sweep:
    """What to train, and where it goes."""

    file: Annotated[Path, tyro.conf.Positional]
    """The grid (TOML)."""

    where: EngineChoice

    out: Path | None = None
    """A folder for all runs, by default runs/ and the file's name. What is finished there is not done again."""

    dry_run: bool = False
    """Only print the tasks."""


def main(arguments: list[str]) -> int:
    options: Sweep = parse(Sweep, arguments, prog="dr3 sweep", description=ABOUT)

    from dr3.sweeps import missing_files, read_grid, run_tasks

    engine, jobs = options.where.build(), read_grid(options.file, run_command)
    out = options.out or Path("runs") / options.file.stem
    missing = missing_files(jobs)
    if options.dry_run:
        _print_tasks(jobs, out, missing)
        return 0
    if missing:
        raise UserError(f"{options.file}: there is no file for the data {', '.join(missing)}.")
    outcome = run_tasks(jobs, out, engine=engine)
    _print_results(outcome)
    return report_failures(outcome)


def run_command(arguments: list[str]) -> None:
    """A line of [prepare]. One that cannot be read makes its parser leave, which is a mistake and no worker's death."""
    from dr3.cli import carry_out

    try:
        carry_out(arguments)
    except SystemExit as left:
        if left.code == 2:
            raise UserError(f"This command cannot be read: dr3 {' '.join(arguments)}.") from None
        if left.code:  # asked to stop; without a code it has only printed its help
            raise


def report_failures(outcome: SweepResult) -> int:
    """Say what failed and where its log is; the exit code."""
    for name, failure in outcome.failures.items():
        print(f"{name} failed: {failure}", file=sys.stderr)
    return 1 if outcome.failures else 0


def _print_tasks(jobs: list[Job], out: Path, missing: list[str]) -> None:

    from dr3.sweeps import Task, data_of, method_words

    words = method_words([job for job in jobs if isinstance(job, Task)])
    rows = []
    for job in jobs:
        state = "finished" if job.finished(out / job.name) else "to do"
        if isinstance(job, Task):
            state = "no such file" if set(data_of([job])) & set(missing) else state
            rows.append([job.name, words[job.name], job.data, str(len(job.members)), f"{job.steps:,}", state])
        else:
            rows.append([job.name, "", job.makes, "", "", state])
    columns = ("task", "method", "data", "members", "steps", "")
    plain_console().print(_table(f"{len(jobs)} tasks in {out}", columns, rows))


def _print_results(outcome: SweepResult) -> None:

    from dr3.runs.results import write_results
    from dr3.sweeps import collected_results, summarise

    console = plain_console()
    results = collected_results(outcome.finished, outcome.out)
    rows = summarise(outcome.finished, outcome.out)
    if rows:
        console.print(_table_of_returns(rows))
        if any(row.diverged for row in rows):
            console.print("A seed that diverged keeps the last return it had.", highlight=False)
    if results:
        file = outcome.out / "results.jsonl"
        write_results(file, results)
        console.print(f"More of them: dr3 stats {file}", soft_wrap=True, highlight=False)
    console.print(f"Everything is in {outcome.out}", soft_wrap=True, highlight=False)


def _table_of_returns(rows: list[SummaryRow]) -> object:
    diverged = any(row.diverged for row in rows)
    columns = ("data", "algorithm", "seeds", *(["diverged"] if diverged else []), "final return", "average return")
    cells = [
        [
            *(row.data, row.algorithm, str(row.seeds)),
            *([str(row.diverged)] if diverged else []),
            *(_interval(row.final), _interval(row.average)),
        ]
        for row in rows
    ]
    return _table("Means over seeds, 95 % bootstrap intervals", columns, cells)


def _interval(one: Interval | None) -> str:
    return "–" if one is None else one.text("{:.4g}".format)


def _table(title: str, columns: tuple[str, ...], rows: list[list[str]]) -> object:
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
