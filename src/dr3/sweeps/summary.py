"""What came out of a sweep: one results file over all its tasks, and a table of returns with intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dr3.runs import Runs
from dr3.runs.folder import RunFolder
from dr3.runs.outcomes import RETURN
from dr3.runs.results import CheckpointResult
from dr3.stats import Interval, average_over_checkpoints, forward_fill, interval, mean, read_results
from dr3.stats.aggregates import Floats
from dr3.sweeps.task import Task


@dataclass(frozen=True)
class SummaryRow:
    """One algorithm on one data set: means over its seeds with 95 % bootstrap intervals.

    A seed that diverged keeps the last return it had; one that never had any leaves no mean.
    """

    data: str
    algorithm: str
    seeds: int
    diverged: int
    final: Interval | None
    average: Interval | None


def collected_results(tasks: Sequence[Task], out: Path) -> list[CheckpointResult]:
    """The results of all `tasks` under `out`, without the untrained policies at step 0.

    The task of a result is its data's word. An algorithm is called by `method_words` and its regularizer:
    `cql:alpha=0.1+dr3:0.03`.

    Args:
        tasks: The tasks.
        out: The folder of the sweep.
    """
    collected, words = [], method_words(tasks)
    for task in tasks:
        file = RunFolder(out / task.name).results
        if file.exists():  # policies were evaluated somewhere
            for row in read_results(file):
                algorithm = row.algorithm.replace(task.method.name, words[task.name], 1)
                collected.append(dataclasses.replace(row, algorithm=algorithm, task=task.data))
    return [row for row in collected if row.step > 0]


def summarise(tasks: Sequence[Task], out: Path) -> list[SummaryRow]:
    """Final return, and average over training, of each algorithm on each data set, of the `tasks` under `out`.

    Args:
        tasks: The tasks.
        out: The folder of the sweep.
    """
    words = method_words(tasks)
    seeds: dict[tuple[str, str], list[tuple[float, float, bool]]] = {}  # final, average, whether it diverged
    for task in tasks:
        runs = Runs(out / task.name)
        if RETURN not in runs.evaluations:  # policies were evaluated nowhere
            continue
        returns, diverged = _returns(runs), runs.status["diverged"]
        averages = average_over_checkpoints(returns[:, None], missing="ignore")[:, 0]
        for number, member in enumerate(runs.members):
            key = task.data, member.algorithm.replace(task.method.name, words[task.name], 1)
            seeds.setdefault(key, []).append((returns[number, -1], averages[number], str(number) in diverged))
    rows = []
    for (data, algorithm), found in sorted(seeds.items(), key=lambda item: item[0][0]):
        final, average, diverged = zip(*found, strict=True)
        rows.append(SummaryRow(data, algorithm, len(found), sum(diverged), _mean(final), _mean(average)))
    return rows


def _returns(runs: Runs) -> Floats:
    """The return of each member whenever policies are evaluated, from the first trained ones on: (members, T).

    A member that diverged keeps the last return it had, also where all have diverged and the run writes no more.
    """
    every, end = runs.config.evaluate_every, runs.config.steps
    due = np.union1d(runs.evaluation_steps, [*range(0, end, every), end])
    latest = np.searchsorted(runs.evaluation_steps, due[due > 0], side="right") - 1
    return forward_fill(runs.evaluations[RETURN])[:, latest]


def _mean(returns: Sequence[float]) -> Interval | None:
    """Every interval from a generator of its own: another task in the sweep changes none of the others."""
    values = np.array(returns)[:, None]
    return None if np.isnan(values).any() else interval(values, mean, np.random.default_rng(0))


def method_words(tasks: Sequence[Task]) -> dict[str, str]:
    """By task, its method and the settings in which the tasks of that method differ: `cql:alpha=0.1`.

    Args:
        tasks: The tasks.
    """
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
