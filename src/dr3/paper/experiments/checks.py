"""What a claim of the paper comes down to, as rules that runs either fulfil or do not: instruments and trends.

A rule here compares medians over members, world by world, and holds if more than half of the worlds of each group
agree; beside a median stand the smallest and the largest member. Rules about scores, with intervals, are in
`score_checks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from dr3.paper.experiments.declaration import Answer
from dr3.paper.experiments.evidence import SCORE, Evidence, Floats, Place
from dr3.runs.outcomes import RETURN

DOT, COSINE, SRANK, MEAN_Q = "features/dot_product", "features/cosine", "features/srank", "q/data_mean"
WORDS = {
    DOT: "feature dot product",
    COSINE: "cosine of the features",
    SRANK: "srank",
    MEAN_Q: "mean Q",
    SCORE: "normalised score",
    RETURN: "return",
    "losses/total": "loss",
}
SETTLED = 0.25  # of its size at the end: what a metric that has settled may still change by


class Middle(NamedTuple):
    """A median over members, between the smallest and the largest of them: all the interval that a few seeds allow."""

    median: float
    smallest: float
    largest: float

    @classmethod
    def of(cls, values: Floats) -> Middle:
        """One member that diverges by orders of magnitude would be all that a mean tells of."""
        return cls(float(np.median(values)), float(values.min()), float(values.max()))

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.smallest:.3g}, {self.largest:.3g})"


@dataclass(frozen=True)
class Comparison:
    """Two numbers of one world, and whether they agree with a claim."""

    place: Place
    here: Middle | float
    there: Middle | float
    agrees: bool


@dataclass(frozen=True)
class Ends:
    """At the end of training, a metric of one label is larger or smaller than that of another."""

    metric: str
    label: str
    size: Literal["larger", "smaller"]
    than: str

    def __call__(self, evidence: Evidence) -> Answer:
        found = []
        for place in evidence.places(self.label, self.than):
            here, there = (Middle.of(evidence.end(self.metric, label, place)) for label in (self.label, self.than))
            larger, smaller = here.median > there.median, here.median < there.median
            found.append(Comparison(place, here, there, larger if self.size == "larger" else smaller))
        rule = f"The {WORDS[self.metric]} of {self.label} ends {self.size} than that of {self.than}"
        return majority(rule, "against", found)


@dataclass(frozen=True)
class WorstEndsLarger:
    """At the end of training, a metric of the largest among some labels is larger than that of another."""

    metric: str
    labels: tuple[str, ...]
    than: str

    def __call__(self, evidence: Evidence) -> Answer:
        found = []
        for place in evidence.places(*self.labels, self.than):
            here = max(Middle.of(evidence.end(self.metric, label, place)) for label in self.labels)
            there = Middle.of(evidence.end(self.metric, self.than, place))
            found.append(Comparison(place, here, there, here.median > there.median))
        rule = f"The {WORDS[self.metric]} of the worst of {', '.join(self.labels)} ends larger than with {self.than}"
        return majority(rule, "against", found)


@dataclass(frozen=True)
class Grows:
    """A metric is larger at the end of training than half-way; `since` 0 compares with the start."""

    metric: str
    label: str
    since: float = 0.5

    def __call__(self, evidence: Evidence) -> Answer:
        found = []
        for place in evidence.places(self.label):
            earlier, end = _between(evidence, self.metric, self.label, place, self.since)
            found.append(Comparison(place, end, earlier, end.median > earlier.median))
        word = "half-way" if self.since == 0.5 else "at the start"
        return majority(f"The {WORDS[self.metric]} of {self.label} is larger at the end than {word}", "after", found)


@dataclass(frozen=True)
class Settles:
    """In the second half of training a metric changes by less than a quarter of its size at the end."""

    metric: str
    label: str

    def __call__(self, evidence: Evidence) -> Answer:
        found = []
        for place in evidence.places(self.label):
            earlier, end = _between(evidence, self.metric, self.label, place, 0.5)
            change = abs(end.median - earlier.median)
            found.append(Comparison(place, end, earlier, change < SETTLED * abs(end.median)))
        rule = (
            f"The {WORDS[self.metric]} of {self.label} has settled: between half-way and the end of training it "
            f"changes by less than {100 * SETTLED:.0f} % of its size at the end"
        )
        return majority(rule, "after", found)


@dataclass(frozen=True)
class NoCollapse:
    """A metric ends at no less than half of the largest value that it had, from the untrained network on."""

    metric: str
    label: str

    def __call__(self, evidence: Evidence) -> Answer:
        found = []
        for place in evidence.places(self.label):
            medians = np.median(evidence.curve(self.metric, self.label, place)[1], axis=0)
            end, largest = float(medians[-1]), float(medians.max())
            found.append(Comparison(place, end, largest, end >= largest / 2))
        rule = (
            f"The {WORDS[self.metric]} of {self.label} does not collapse: it ends at no less than half of its largest "
            "value over training"
        )
        return majority(rule, "of", found)


@dataclass(frozen=True)
class Falls:
    """A policy that starts good ends worse than it started."""

    label: str

    def __call__(self, evidence: Evidence) -> Answer:
        found = []
        for place in evidence.places(self.label):
            start, end = _between(evidence, RETURN, self.label, place, 0.0)
            found.append(Comparison(place, end, start, end.median < start.median))
        return majority(f"From a good solution the return of {self.label} falls", "after", found)


@dataclass(frozen=True)
class Keeps:
    """Of a good solution's return, one label has more left at the end than another."""

    label: str
    than: str

    def __call__(self, evidence: Evidence) -> Answer:
        found = []
        for place in evidence.places(self.label, self.than):
            shares = []
            for label in (self.label, self.than):
                start, end = _between(evidence, RETURN, label, place, 0.0)
                shares.append(end.median / start.median if start.median else np.nan)
            found.append(Comparison(place, *shares, agrees=shares[0] > shares[1]))
        return majority(
            f"{self.label} keeps a larger share of a good solution's return than {self.than}", "against", found
        )


@dataclass(frozen=True)
class Robust:
    """With the last layer back at its initial value, more of one label's return is left than of another's."""

    label: str
    than: str

    def __call__(self, evidence: Evidence) -> Answer:
        found = []
        for place in evidence.places(self.label, self.than):
            here, there = (_last_layer(evidence, label, place) for label in (self.label, self.than))
            found.append(Comparison(place, here, there, here > there))
        rule = f"With the last layer re-initialised more is left of {self.label}'s return than of {self.than}'s"
        return majority(rule, "against", found)


def majority(rule: str, word: str, found: Sequence[Comparison]) -> Answer:
    """Whether more than half of the worlds agree, in every group."""
    groups: dict[str, list[Comparison]] = {}
    for one in found:
        groups.setdefault(one.place.group, []).append(one)
    holds = bool(found) and all(2 * sum(one.agrees for one in of) > len(of) for of in groups.values())
    details = "; ".join(f"{one.place}: {_said(one.here)} {word} {_said(one.there)}" for one in found)
    agree = f"on {sum(one.agrees for one in found)} of {len(found)} worlds"
    return Answer(
        rule=f"{rule}, on more than half of the worlds.",
        holds=holds,
        sentence=f"That is so {agree} ({details}).",
        numbers={str(one.place): [_median(one.here), _median(one.there)] for one in found},
        reason=f"{rule.partition(':')[0]} {agree}.",
    )


def _said(number: Middle | float) -> str:
    return str(number) if isinstance(number, Middle) else f"{number:.3g}"


def _median(number: Middle | float) -> float:
    return number.median if isinstance(number, Middle) else number


def _between(evidence: Evidence, metric: str, label: str, place: Place, since: float) -> tuple[Middle, Middle]:
    """Over members, at a share of training and at its end."""
    steps, values = evidence.curve(metric, label, place)
    earlier = int(np.searchsorted(steps, since * steps[-1]))
    return Middle.of(values[:, earlier]), Middle.of(values[:, -1])


def _last_layer(evidence: Evidence, label: str, place: Place) -> float:
    """The share of the return that is left, averaged over members and checkpoints."""
    shares = evidence.layers(label, place).returns[0, -1]
    known = shares[np.isfinite(shares)]
    return float(known.mean()) if len(known) else np.nan
