"""Rules about normalised scores: over all runs and worlds of a group at once, with stratified bootstrap intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dr3.paper.experiments.declaration import Answer
from dr3.paper.experiments.evidence import REPLICATES, SCORE, Evidence, Floats, Measure
from dr3.stats import Comparison, Interval, difference, improvement, iqm, median

STATISTICS = {"IQM": iqm, "median": median}


@dataclass(frozen=True)
class Gain:
    """IQM or median of one label is higher than another's: the difference's interval is above 0 in every group."""

    label: str
    over: str
    measure: Measure = "average"
    statistic: str = "IQM"

    def __call__(self, evidence: Evidence) -> Answer:
        gains = _differences(evidence, self.label, self.over, self.measure, self.statistic)
        return Answer(
            f"The {words(evidence.reached(self.measure))} of {self.label} exceeds that of {self.over}: the interval of "
            f"the difference of {self.statistic}s is above 0.",
            bool(gains) and all(gain.lower > 0 for gain in gains.values()),
            _sentence(evidence, self.label, self.over, self.measure, gains, self.statistic),
            {group: [gain.estimate, gain.lower, gain.upper] for group, gain in gains.items()},
            f"No clear gain of {self.label} over {self.over}, {words(evidence.reached(self.measure))}: "
            f"{_by_group({group: gain for group, gain in gains.items() if gain.lower <= 0})}.",
        )


@dataclass(frozen=True)
class NotWorse:
    """The IQM of one label is not lower than that of another beyond chance: the interval reaches 0 in every group."""

    label: str
    than: str
    measure: Measure = "average"

    def __call__(self, evidence: Evidence) -> Answer:
        gains = _differences(evidence, self.label, self.than, self.measure)
        return Answer(
            f"The {words(evidence.reached(self.measure))} of {self.label} is not below that of {self.than}: the "
            "interval of the difference of IQMs is not below 0.",
            bool(gains) and all(gain.upper >= 0 for gain in gains.values()),
            _sentence(evidence, self.label, self.than, self.measure, gains),
            {group: [gain.estimate, gain.lower, gain.upper] for group, gain in gains.items()},
            f"A loss of {self.label} against {self.than}, {words(evidence.reached(self.measure))}: "
            f"{_by_group({group: gain for group, gain in gains.items() if gain.upper < 0})}.",
        )


@dataclass(frozen=True)
class Declines:
    """The IQM over training ends below its peak: in every group the interval of the drop is above 0.

    The peak is chosen after the fact, which favours a drop: chance alone would pass now and then.
    """

    label: str

    def __call__(self, evidence: Evidence) -> Answer:
        drops, parts = {}, []
        for group in evidence.groups:
            cube = _over_training(evidence, self.label, group)
            peak = int(np.argmax([iqm(cube[:, :, step]) for step in range(cube.shape[-1])]))
            drop = _difference(cube[:, :, peak], cube[:, :, -1])
            drops[group] = drop
            parts.append(f"{_of(group)}{drop} points by the end, from checkpoint {peak + 1} of {cube.shape[-1]}")
        return Answer(
            f"{self.label} gets worse with training: the interval of the drop from the peak of its IQM to the end is "
            "above 0.",
            bool(drops) and all(drop.lower > 0 for drop in drops.values()),
            f"{self.label} drops by {'; '.join(parts)}.",
            {group: [drop.estimate, drop.lower, drop.upper] for group, drop in drops.items()},
            f"No clear drop of {self.label} from its peak: "
            f"{_by_group({group: drop for group, drop in drops.items() if drop.lower <= 0})}.",
        )


@dataclass(frozen=True)
class Improves:
    """The probability of improvement is significant and meaningful (appendix A.8): lower > 0.5, upper > 0.75."""

    label: str
    over: str
    measure: Measure = "final"

    def __call__(self, evidence: Evidence) -> Answer:
        found = compared(evidence, self.label, self.over, self.measure).improvement
        chance = found.probability
        return Answer(
            f"{self.label} improves over {self.over}: the interval of the probability of improvement is above 0.5 and "
            "reaches beyond 0.75.",
            found.significant and found.meaningful,
            f"A run of {self.label} beats one of {self.over} with probability {chance.estimate:.2f} "
            f"({chance.lower:.2f}, {chance.upper:.2f}), by {words(evidence.reached(self.measure))}.",
            {"probability": [chance.estimate, chance.lower, chance.upper]},
            f"Probability that a run of {self.label} beats one of {self.over}: {chance.estimate:.2f} "
            f"({chance.lower:.2f}, {chance.upper:.2f}).",
        )


def compared(evidence: Evidence, label: str, over: str, measure: Measure) -> Comparison:
    """One label against another, over all worlds that both have."""
    places = evidence.places(label, over)
    first, second = (evidence.scores(one, places, measure) for one in (label, over))
    chance = improvement(first, second, np.random.default_rng(0), replicates=REPLICATES)
    return Comparison(label, over, chance, _difference(first, second))


def words(measure: Measure, measured: str = "score") -> str:
    if isinstance(measure, float):
        return f"{measured} after {measure:.0%} of training"
    return f"final {measured}" if measure == "final" else f"{measured} averaged over training"


def _differences(
    evidence: Evidence, label: str, over: str, measure: Measure, statistic: str = "IQM"
) -> dict[str, Interval]:
    return {
        group: _difference(*(evidence.scores(one, places, measure) for one in (label, over)), statistic)
        for group in evidence.groups
        if (places := evidence.places(label, over, group=group))
    }


def _difference(first: Floats, second: Floats, statistic: str = "IQM") -> Interval:
    """Runs with the same seed have the same data and initial weights, so they are drawn together."""
    return difference(
        first, second, STATISTICS[statistic], np.random.default_rng(0), paired=True, replicates=REPLICATES
    )


def _over_training(evidence: Evidence, label: str, group: str) -> Floats:
    """Scores of all checkpoints but the untrained one: (runs, worlds, checkpoints)."""
    curves = [evidence.curve(SCORE, label, place) for place in evidence.places(label, group=group)]
    return np.stack([values[:, steps > 0] for steps, values in curves], axis=1)


def _sentence(
    evidence: Evidence, label: str, over: str, measure: Measure, gains: dict[str, Interval], statistic: str = "IQM"
) -> str:
    parts = []
    for group, gain in gains.items():
        here, there = (evidence.aggregate(one, group, measure, STATISTICS[statistic]) for one in (label, over))
        parts.append(f"{_of(group)}{label} {here}, {over} {there}, difference {gain}")
    return f"{statistic} of the {words(evidence.reached(measure))}: {'; '.join(parts)}."


def _by_group(found: dict[str, Interval]) -> str:
    return ", ".join(f"{one} on {group}" if group else str(one) for group, one in found.items())


def _of(group: str) -> str:
    return f"{group}: " if group else ""
