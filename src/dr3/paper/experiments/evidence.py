"""What the bundles of an experiment show, by label and world: curves, last values, normalised scores."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dr3.diagnostics.reinitialisation import LayerTest
from dr3.errors import UserError
from dr3.paper.experiments.bundle import DOT, LOSS, NORM, OUTSIDE, SRANK, TD_ERROR, Bundle
from dr3.paper.experiments.declaration import Arm
from dr3.stats import Interval, Statistic, evenly_spaced, interval, iqm

Floats = NDArray[np.float64]
SCORE = "score"  # beside the metrics of a run: its normalised return, or how often it succeeds
LAYERS = "layers/last"  # the share of the return above a random agent's that the last layer's initial value leaves
# The last checkpoint; means over training or over a part of it; the spread over its second half; the checkpoint after
# a share of training.
Measure = Literal["final", "average", "start", "early", "half", "late", "spread"] | float
PARTS = {"early": (0.1, 0.5), "half": (0.4, 0.6), "late": (0.8, 1.0)}  # shares of training, the first one left out
RATIOS = (DOT, SRANK, NORM, LOSS, TD_ERROR)  # metrics that span orders of magnitude: their logarithms are compared
SMALLEST = 1e-9
CHECKPOINTS = 20  # over which the paper averages
REPLICATES = 10_000


@dataclasses.dataclass(frozen=True)
class Place:
    """Where an arm is: a world, and the group of claims it belongs to."""

    group: str
    world: str

    def __str__(self) -> str:
        return f"{self.world}, {self.group}" if self.group else self.world


class Evidence:
    """The arms of a design whose tasks all have a bundle in `folder`; `missing` names the tasks that have none.

    All that is random in what it computes is drawn from a fixed seed.
    """

    def __init__(self, arms: Sequence[Arm], folder: Path) -> None:
        self.folder = folder
        tasks = {task.name: task for arm in arms for task in arm.tasks}
        found = {name: Bundle.read(folder, task) for name, task in tasks.items()}
        self._bundles = {name: bundle for name, bundle in found.items() if bundle is not None}
        self.missing = [name for name in tasks if name not in self._bundles]
        self.arms = {
            (arm.label, Place(arm.group, arm.world)): arm
            for arm in arms
            if all(task.name in self._bundles for task in arm.tasks)
        }

    @property
    def seconds(self) -> float:
        """That all of its runs took together."""
        return sum(bundle.seconds for bundle in self._bundles.values())

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

    def bundles(self, label: str, place: Place) -> list[Bundle]:
        return [self._bundles[task.name] for task in self.arms[label, place].tasks]

    def curve(self, metric: str, label: str, place: Place) -> tuple[NDArray[np.int64], Floats]:
        """Steps (T,) and values (members, T), members by seed. One that diverged stays at what was last known of it."""
        found, scoring = self.bundles(label, place), self.arms[label, place].scoring
        name = scoring.metric if metric == SCORE else metric
        curves = [bundle.curve(name) for bundle in found]
        steps = curves[0][0]
        if any(not np.array_equal(steps, other) for other, _ in curves):
            raise UserError(f"The runs of {label} on {place} were measured at different steps.")
        lines = [
            line
            for bundle, (_, rows) in zip(found, curves, strict=True)
            for line in zip(bundle.seeds, rows, strict=True)
        ]
        values = np.stack([line for _, line in sorted(lines, key=lambda one: one[0])])
        if metric == SCORE:
            low, high = scoring.limits(found)
            values = 100 * (values - low) / (high - low)
        return steps, values

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

    def part(self, group: str) -> Evidence:
        """The same of one group alone."""
        one = copy.copy(self)
        one.arms = {key: arm for key, arm in self.arms.items() if key[1].group == group}
        for name in ("labels", "groups"):
            one.__dict__.pop(name, None)
        return one

    def values(self, metric: str, label: str, place: Place, measure: Measure) -> Floats:
        """One number for each run, by seed: (runs,). Of a metric in `RATIOS` it is the logarithm."""
        if metric == LAYERS:
            return self.layer_shares(label, place)
        return self._measured(metric, label, place, measure, log=is_ratio(metric))

    def outside(self, label: str, place: Place) -> float | None:
        """The share of Q that lies beyond what rewards allow, at the end: the median over runs."""
        try:
            return float(np.median(self.curve(OUTSIDE, label, place)[1][:, -1]))
        except (KeyError, UserError):
            return None

    def reached(self, measure: Measure) -> Measure:
        """A share of training as it is really measured: where policies were first tried from there on."""
        if isinstance(measure, str) or not self.arms:
            return measure
        steps, _ = self.curve(SCORE, *next(iter(self.arms)))
        return float(steps[_at(steps, measure)] / steps[-1])

    def layer_shares(self, label: str, place: Place) -> Floats:
        """Of each run, what the last layer's initial value leaves of the return above a random agent's: (runs,).

        The mean over checkpoints; NaN where none earned more than a random agent.
        """
        low = self.arms[label, place].scoring.limits(self.bundles(label, place))[0]
        found = []
        for bundle in self.bundles(label, place):
            if bundle.layers is None:
                raise UserError(f"The evidence of {label} on {place} holds no test of its layers.")
            earned = bundle.layers["unmodified"] - low
            left = np.divide(
                bundle.layers["returns"][:, -1] - low, earned, out=np.full_like(earned, np.nan), where=earned > 0
            )
            known = np.isfinite(left)
            total = np.where(known, left, 0).sum(axis=1)
            shares = np.divide(total, known.sum(axis=1), out=np.full(len(left), np.nan), where=known.any(axis=1))
            found += list(zip(bundle.seeds, shares, strict=True))
        return np.array([share for _, share in sorted(found, key=lambda one: one[0])])

    def layers(self, label: str, place: Place) -> LayerTest:
        """What is left of the return when one layer is put back to its initial value, at a few checkpoints.

        Averaged over members: `returns` is the share that is left (1, layers, T), `unmodified` is 1.
        """
        found = [bundle.layers for bundle in self.bundles(label, place)]
        if any(one is None for one in found):
            raise UserError(f"The evidence of {label} on {place} holds no test of its layers.")
        tests = [
            LayerTest(
                "re-initialisation", tuple(one["names"]), np.array(one["steps"]), one["returns"], one["unmodified"]
            )
            for one in found
            if one is not None
        ]
        shares = np.concatenate([test.normalised for test in tests])
        known = np.isfinite(shares)  # not where a checkpoint earned nothing that a layer could keep
        total, count = np.where(known, shares, 0).sum(axis=0), known.sum(axis=0)
        shares = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)[None]
        return dataclasses.replace(tests[0], returns=shares, unmodified=np.ones((1, shares.shape[-1])))

    def _measured(self, metric: str, label: str, place: Place, measure: Measure, *, log: bool = False) -> Floats:
        steps, values = self.curve(metric, label, place)
        values = np.log(np.maximum(values, SMALLEST)) if log else values
        share = steps / steps[-1]
        if measure == "average":
            trained = values[:, steps > 0]
            return trained[:, evenly_spaced(trained.shape[1], CHECKPOINTS)].mean(axis=1)
        if measure == "spread":
            return values[:, share > 0.5].std(axis=1)
        if measure == "start":
            return values[:, 0]
        if isinstance(measure, str) and measure in PARTS:
            low, high = PARTS[measure]
            chosen = (share > low) & (share <= high)
            return values[:, chosen if chosen.any() else [_at(steps, high)]].mean(axis=1)
        return values[:, _at(steps, 1.0 if isinstance(measure, str) else measure)]


def is_ratio(metric: str) -> bool:
    return metric in RATIOS


def words(name: str, measure: Measure) -> str:
    """A metric and where it is measured, in words."""
    if isinstance(measure, float):
        return f"{name} after {measure:.0%} of training"
    parts = {"average": "averaged over training", "late": "in the last fifth of training", "early": "early in training"}
    if measure == "spread":
        return f"spread of the {name} over the second half of training"
    return f"final {name}" if measure == "final" else f"{name} {parts.get(measure, f'at the {measure}')}"


def _at(steps: NDArray[np.int64], share: float) -> int:
    return int(np.searchsorted(steps, share * steps[-1]))
