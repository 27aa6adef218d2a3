"""What the runs of an experiment show, by label and world: curves, last values, normalised scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dr3.diagnostics.reinitialisation import LayerTest, reinitialise
from dr3.paper.experiments.declaration import Arm
from dr3.runs import Runs
from dr3.runs.outcomes import RETURN
from dr3.stats import Interval, Statistic, carried_on, evenly_spaced, interval, iqm

Floats = NDArray[np.float64]
SCORE = "score"  # beside the metrics of a run: its normalised return, or how often it succeeds
# The last checkpoint, the mean over training, or the checkpoint after that share of training.
Measure = Literal["final", "average"] | float
CHECKPOINTS = 20  # over which the paper averages
REPLICATES = 10_000
LAYER_CHECKPOINTS = 5


@dataclasses.dataclass(frozen=True)
class Place:
    """Where an arm is: a world, and the group of claims it belongs to."""

    group: str
    world: str

    def __str__(self) -> str:
        return f"{self.world}, {self.group}" if self.group else self.world


class Evidence:
    """The runs of the arms of a design. All that is random in what it computes is drawn from a fixed seed."""

    def __init__(self, arms: Sequence[Arm], runs: Path) -> None:
        self.arms = {(arm.label, Place(arm.group, arm.world)): arm for arm in arms}
        self.folder = runs

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(label for label, _ in self.arms))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.group for _, place in self.arms))

    def places(self, *labels: str, group: str | None = None) -> list[Place]:
        """Where all these labels are, in one group or in any."""
        everywhere = dict.fromkeys(place for _, place in self.arms if group in (None, place.group))
        return [place for place in everywhere if all((label, place) in self.arms for label in labels)]

    def runs(self, label: str, place: Place) -> list[Runs]:
        return [self._runs(self.folder / task.name) for task in self.arms[label, place].tasks]

    def curve(self, metric: str, label: str, place: Place) -> tuple[NDArray[np.int64], Floats]:
        """Steps (T,) and values (members, T), members by seed. One that diverged stays at what was last known of it."""
        found = self.runs(label, place)
        tried = metric in (SCORE, RETURN)
        scoring = self.arms[label, place].scoring
        name = scoring.metric if metric == SCORE else metric
        due = np.unique(np.concatenate([_due(run, tried=tried) for run in found]))
        lines = []
        for run in found:
            steps, rows = (run.evaluation_steps, run.evaluations) if tried else (run.steps, run.metrics)
            latest = np.searchsorted(steps, due, side="right") - 1
            lines += [
                (member.seed, carried_on(row)[latest]) for member, row in zip(run.members, rows[name], strict=True)
            ]
        values = np.stack([line for _, line in sorted(lines, key=lambda one: one[0])])
        if metric == SCORE:
            low, high = scoring.limits()
            values = 100 * (values - low) / (high - low)
        return due, values

    def end(self, metric: str, label: str, place: Place) -> Floats:
        """The last value of each member: (members,)."""
        return self.curve(metric, label, place)[1][:, -1]

    def scores(self, label: str, places: Sequence[Place], measure: Measure, metric: str = SCORE) -> Floats:
        """One number for each run, by default a normalised score: (runs, places). The untrained policy is left out."""
        return np.stack([self._measured(metric, label, place, measure) for place in places], axis=1)

    def aggregate(self, label: str, group: str, measure: Measure, statistic: Statistic = iqm) -> Interval:
        """A statistic over all runs and worlds of a group, with its stratified bootstrap interval."""
        matrix = self.scores(label, self.places(label, group=group), measure)
        return interval(matrix, statistic, np.random.default_rng(0), replicates=REPLICATES)

    def reached(self, measure: Measure) -> Measure:
        """A share of training as it is really measured: where policies were first tried from there on."""
        if isinstance(measure, str):
            return measure
        steps, _ = self.curve(SCORE, *next(iter(self.arms)))
        return float(steps[_at(steps, measure)] / steps[-1])

    def layers(self, label: str, place: Place) -> LayerTest:
        """What is left of the return when one layer is put back to its initial value, at a few checkpoints.

        Averaged over members: `returns` is the share that is left (1, layers, T), `unmodified` is 1.
        """
        tests = [self._layer_test(run.path) for run in self.runs(label, place)]
        shares = np.concatenate([test.normalised for test in tests])
        known = np.isfinite(shares)  # not where a checkpoint earned nothing that a layer could keep
        total, count = np.where(known, shares, 0).sum(axis=0), known.sum(axis=0)
        shares = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)[None]
        return dataclasses.replace(tests[0], returns=shares, unmodified=np.ones((1, shares.shape[-1])))

    def _measured(self, metric: str, label: str, place: Place, measure: Measure) -> Floats:
        steps, values = self.curve(metric, label, place)
        if measure == "average":
            trained = values[:, steps > 0]
            return trained[:, evenly_spaced(trained.shape[1], CHECKPOINTS)].mean(axis=1)
        return values[:, _at(steps, 1.0 if measure == "final" else float(measure))]

    def _runs(self, path: Path) -> Runs:
        if path not in self._opened:
            self._opened[path] = Runs(path)
        return self._opened[path]

    def _layer_test(self, path: Path) -> LayerTest:
        if path not in self._layer_tests:
            run = self._runs(path)
            saved = [step for step in run.checkpoints if step > 0]
            steps = [saved[number] for number in evenly_spaced(len(saved), min(LAYER_CHECKPOINTS, len(saved)))]
            self._layer_tests[path] = reinitialise(run, steps=steps)
        return self._layer_tests[path]

    @cached_property
    def _opened(self) -> dict[Path, Runs]:
        return {}

    @cached_property
    def _layer_tests(self) -> dict[Path, LayerTest]:
        return {}


def _at(steps: NDArray[np.int64], share: float) -> int:
    return int(np.searchsorted(steps, share * steps[-1]))


def _due(run: Runs, *, tried: bool) -> NDArray[np.int64]:
    """The steps at which a run measures or is tried, also after all of its members diverged: then it writes no more."""
    every, end = run.config["evaluate_every" if tried else "metrics_every"], run.config["steps"]
    return np.union1d(run.evaluation_steps if tried else run.steps, [*range(0, end, every), end])
