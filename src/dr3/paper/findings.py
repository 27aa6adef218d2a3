"""Findings: claims of the paper on a few small runs, each with the rule by which it holds or does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dr3.cores import available_cores
from dr3.runs import Runs
from dr3.runs.interruption import Interruption, watched
from dr3.runs.outcomes import RETURN
from dr3.stats import carried_on
from dr3.sweeps import Task

DOT_PRODUCT = "features/dot_product"
MEAN_Q = "q/data_mean"


class Curve(Protocol):
    """One line of a picture: a method on some data, over all seeds. Equal ones are trained once."""

    @property
    def folder(self) -> str:
        """Where its runs go."""
        ...

    @property
    def seeds(self) -> int: ...

    def task(self, seed: int) -> Task:
        """What one seed trains."""
        ...


Results = dict[Any, list[Runs]]  # of each curve, one run for each seed


@dataclass(frozen=True)
class Finding:
    """What the paper claims, by which rule we say that it holds, what came out, and the runs to see it by."""

    id: str
    claim: str
    rule: str
    holds: bool
    sentence: str
    numbers: dict[str, Any]
    results: Results


def make(curves: Iterable[Curve], out: Path, finished: Callable[[int, int], None]) -> Results:
    """Train all curves, one run to a core. `finished(done, of)` is told after each run.

    Runs that `out` already holds are not made again, and unfinished ones go on. Ctrl-C or SIGTERM lets the running ones
    save and then stops.
    """
    once = list(dict.fromkeys(curves))  # each once, in order
    jobs = sorted(((curve, seed) for curve in once for seed in range(curve.seeds)), key=lambda job: job[1])
    results: Results = {curve: [] for curve in once}
    with watched() as asked, ThreadPoolExecutor(max_workers=available_cores()) as pool:
        runs = pool.map(lambda job: _train(*job, out, asked), jobs)
        for done, ((curve, _), run) in enumerate(zip(jobs, runs, strict=True), start=1):
            results[curve].append(run)
            finished(done, len(jobs))
    if asked.signal:
        asked.leave()
    return results


def _train(curve: Curve, seed: int, out: Path, asked: Interruption) -> Runs:
    if asked.signal:
        asked.leave()
    folder = out / "runs" / curve.folder / f"seed-{seed}"
    curve.task(seed).run(folder, progress=False)
    return Runs(folder)


def only(curves: Mapping[Any, Curve], results: Results) -> Results:
    """The part of the results that a finding is about."""
    return {curve: results[curve] for curve in curves.values()}


def over_seeds(runs: list[Runs], metric: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The steps (T,) and the values (seeds, T) of a metric or an evaluation."""
    if metric == RETURN:
        return runs[0].evaluation_steps, np.concatenate([run.evaluations[metric] for run in runs])
    return runs[0].steps, np.concatenate([run.metrics[metric] for run in runs])


def returns_of(runs: list[Runs]) -> list[NDArray[np.float64]]:
    """The return over training of each seed, from the untrained policy on."""
    return [carried_on(run.evaluations[RETURN][0]) for run in runs]


def average_returns(runs: list[Runs]) -> NDArray[np.float64]:
    """Over training, without the untrained policy, the paper's measure of stability: (seeds,)."""
    return np.array([line[1:].mean() for line in returns_of(runs)])


def at_the_end(runs: list[Runs], metric: str = DOT_PRODUCT) -> NDArray[np.float64]:
    """The last value of each seed: (seeds,)."""
    return np.array([carried_on(run.metrics[metric][0])[-1] for run in runs])


def median(values: NDArray[np.float64]) -> float:
    """Over seeds: one that diverges by orders of magnitude would be all that a mean tells of."""
    return float(np.median(values))


def words(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def as_list(values: NDArray[np.float64]) -> list[float]:
    return [float(value) for value in values]
