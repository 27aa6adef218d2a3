"""What came out of a sweep: one results file over all its tasks, and a table of returns with intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dr3.results import Result
from dr3.stats import Interval, Matrices, ScoreTable, interval, mean, read_results
from dr3.sweeps.task import Task
from dr3.training.folder import RunFolder


@dataclass(frozen=True)
class Row:
    """One algorithm on one data set: means over its seeds with 95 % bootstrap intervals. None where no seed has one."""

    data: str
    algorithm: str
    seeds: int
    final: Interval | None
    average: Interval | None


def collected_results(tasks: Sequence[Task], out: Path) -> list[Result]:
    """The results of all `tasks` under `out`, without the untrained policies at step 0.

    The task of a result is its data's word. An algorithm is called by `method_words` and its regularizer:
    `cql:alpha=0.1+dr3:0.03`.
    """
    collected, words = [], method_words(tasks)
    for task in tasks:
        file = RunFolder(out / task.name).results
        if file.exists():  # policies were tried somewhere
            for row in read_results(file):
                algorithm = row.algorithm.replace(task.method.name, words[task.name], 1)
                collected.append(dataclasses.replace(row, algorithm=algorithm, task=task.data))
    return [row for row in collected if row.step > 0]


def summarise(results: Sequence[Result]) -> list[Row]:
    """Final return, and average over training, of each algorithm on each data set."""
    if not results:
        return []
    table = ScoreTable(results)
    final, average = table.final(), table.average()
    return [
        Row(
            data,
            algorithm,
            len(table.values[algorithm, data]),
            _interval(final, algorithm, data),
            _interval(average, algorithm, data),
        )
        for data in table.tasks
        for algorithm in table.algorithms
        if (algorithm, data) in table.values
    ]


def _interval(matrices: Matrices, algorithm: str, data: str) -> Interval | None:
    """Every interval from a generator of its own: another task in the sweep changes none of the others."""
    column = matrices.scores[algorithm][:, [matrices.tasks.index(data)]]
    known = column[~np.isnan(column)][:, None]  # a seed that diverged has no last checkpoint
    return interval(known, mean, np.random.default_rng(0)) if len(known) else None


def method_words(tasks: Sequence[Task]) -> dict[str, str]:
    """By task, its method and the settings in which the tasks of that method differ: `cql:alpha=0.1`."""
    settings = {task.name: dataclasses.asdict(task.method) for task in tasks}  # ty: ignore[invalid-argument-type]
    words = {}
    for task in tasks:
        rivals = [settings[other.name] for other in tasks if other.method.name == task.method.name]
        own = settings[task.name].items()
        varied = [f"{key}={_word(value)}" for key, value in own if any(other[key] != value for other in rivals)]
        words[task.name] = ":".join([task.method.name, *varied])
    return words


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
