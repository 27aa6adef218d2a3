"""From rows of a results file to runs x tasks matrices, with every hole named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from dr3.errors import UserError
from dr3.runs.results import CheckpointResult
from dr3.stats.aggregates import Floats
from dr3.stats.curves import evenly_spaced

Scale = Literal["score", "normalised", "raw"]
# (task, mean return) -> normalised score, or None for a task it does not know.
Normaliser = Callable[[str, float], float | None]


@dataclass(frozen=True)
class Hole:
    """A run that is not in a matrix although its algorithm has that seed on another task, and why."""

    algorithm: str
    task: str
    seed: int
    reason: str

    def __str__(self) -> str:
        return f"{self.algorithm}, {self.task}, seed {self.seed}: {self.reason}"


@dataclass(frozen=True)
class Matrices:
    """{algorithm: (runs, tasks)} with NaN in the holes. Row i of an algorithm is `seeds[algorithm][i]`."""

    tasks: tuple[str, ...]
    seeds: dict[str, tuple[int, ...]]
    scores: dict[str, Floats]
    holes: tuple[Hole, ...]

    def on(self, tasks: Sequence[str]) -> Matrices:
        """Only these tasks, and only the holes in them."""
        columns = [self.tasks.index(task) for task in tasks]
        return Matrices(
            tuple(tasks),
            self.seeds,
            {name: matrix[:, columns] for name, matrix in self.scores.items()},
            tuple(hole for hole in self.holes if hole.task in tasks),
        )

    @property
    def common_tasks(self) -> tuple[str, ...]:
        """The tasks on which every algorithm has at least one run."""
        has = np.all([~np.isnan(matrix).all(axis=0) for matrix in self.scores.values()], axis=0)
        return tuple(task for task, there in zip(self.tasks, has, strict=True) if there)


class ScoreTable:
    """Scores of all runs at all checkpoints.

    The score of a checkpoint is its `score`, or else its mean return put through `normalise`, or else the mean return
    as it is; `scales` says which, per task. One task cannot have two scales.
    """

    def __init__(self, results: Iterable[CheckpointResult], normalise: Normaliser = lambda task, value: None) -> None:
        # (algorithm, task) -> seed -> step -> score
        self.values: dict[tuple[str, str], dict[int, dict[int, float]]] = {}
        self.scales: dict[str, Scale] = {}
        for result in results:
            scale, value = _score(result, normalise)
            if self.scales.setdefault(result.task, scale) != scale:
                raise UserError(
                    f"{result.task}: some rows have a score and some only returns; write the score in all or in none."
                )
            self.values.setdefault((result.algorithm, result.task), {}).setdefault(result.seed, {})[result.step] = value

    @cached_property
    def algorithms(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(algorithm for algorithm, _ in self.values))

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        return tuple(sorted(self.scales))

    @cached_property
    def seeds(self) -> dict[str, tuple[int, ...]]:
        """For each algorithm the seeds it has on any task."""
        return {
            name: tuple(sorted({seed for (other, _), runs in self.values.items() if other == name for seed in runs}))
            for name in self.algorithms
        }

    def steps(self, task: str) -> tuple[int, ...]:
        """The checkpoints that any run of this task has."""
        runs = [run for (_, other), by_seed in self.values.items() if other == task for run in by_seed.values()]
        return tuple(sorted({step for run in runs for step in run}))

    def trained_steps(self, task: str) -> tuple[int, ...]:
        """Those of `steps` at which something had been learned; the untrained policy at step 0 only where it is all."""
        steps = self.steps(task)
        return tuple(step for step in steps if step > 0) or steps

    @cached_property
    def common_steps(self) -> tuple[int, ...]:
        """The checkpoints that every algorithm has, in at least one run, on every task it was run on."""
        by_pair = [{step for run in runs.values() for step in run} for runs in self.values.values()]
        return tuple(sorted(set.intersection(*by_pair)))

    @property
    def skipped_steps(self) -> tuple[int, ...]:
        """The checkpoints that only some have, which a curve over all tasks leaves out."""
        return tuple(sorted({step for task in self.tasks for step in self.steps(task)} - set(self.common_steps)))

    def final(self) -> Matrices:
        """The last checkpoint of each task. A run that stopped before it is a hole, not a shorter run."""
        return self._build(lambda task: self.steps(task)[-1:])

    def average(self, count: int | None = 20) -> Matrices:
        """The average over evenly spaced checkpoints, the paper's stability measure; a run needs all of them.

        The untrained policy at step 0 is none of them.
        """

        def chosen(task: str) -> tuple[int, ...]:
            steps = self.trained_steps(task)
            return tuple(steps[i] for i in evenly_spaced(len(steps), count))

        return self._build(chosen)

    def at(self, step: int) -> Matrices:
        """One checkpoint."""
        return self._build(lambda task: (step,))

    def over_training(self) -> dict[str, Floats]:
        """{algorithm: (runs, tasks, checkpoints)} at `common_steps`, NaN in the holes."""
        matrices = [self.at(step).scores for step in self.common_steps]
        if not matrices:
            raise UserError("the tasks have no checkpoint in common, so there is no curve over all of them.")
        return {name: np.stack([scores[name] for scores in matrices], axis=-1) for name in self.algorithms}

    def _build(self, wanted: Callable[[str], tuple[int, ...]]) -> Matrices:
        scores = {name: np.full((len(self.seeds[name]), len(self.tasks)), np.nan) for name in self.algorithms}
        holes = []
        for name in self.algorithms:
            for column, task in enumerate(self.tasks):
                steps = wanted(task)
                for row, seed in enumerate(self.seeds[name]):
                    run = self.values.get((name, task), {}).get(seed, {})
                    lacking = [step for step in steps if step not in run]
                    if lacking:
                        holes.append(Hole(name, task, seed, _reason(run, lacking)))
                    else:
                        scores[name][row, column] = np.mean([run[step] for step in steps])
        return Matrices(self.tasks, self.seeds, scores, tuple(holes))


def _score(result: CheckpointResult, normalise: Normaliser) -> tuple[Scale, float]:
    if result.score is not None:
        return "score", result.score
    value = float(np.mean(result.returns))
    normalised = normalise(result.task, value)
    return ("raw", value) if normalised is None else ("normalised", normalised)


def _reason(run: dict[int, float], lacking: list[int]) -> str:
    if not run:
        return "no run"
    if len(lacking) == 1:
        return f"no checkpoint at step {lacking[0]:,} (its last is {max(run):,})"
    return f"{len(lacking)} of its checkpoints are missing, the first at step {lacking[0]:,}"
