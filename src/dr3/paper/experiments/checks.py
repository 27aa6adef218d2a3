"""What a claim of the paper comes down to, as rules that runs either fulfil or do not.

The unit is a run: one seed with its own weights, on data that the compared sides share. A rule about a mean takes the
differences of such pairs world by world, and Student's t for the mean over worlds (`mean_interval`); a rule about
another statistic swaps the two sides of pairs (`swap_chance`). Both keep what they promise with two seeds as with five:
on runs that differ by nothing but noise a rule holds in about 2.5 % of cases. Metrics that span orders of magnitude are
compared by their ratio. A rule looks at one group of worlds (one of the paper's sizes of data) at a time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special, stats

from dr3.paper.experiments.bundle import COSINE, DOT, LOSS, MEAN_Q, NORM, OUTSIDE, SRANK, TD_ERROR
from dr3.paper.experiments.declaration import Answer, Cell, Check, Verdict
from dr3.paper.experiments.evidence import LAYERS, REPLICATES, SCORE, Evidence, Floats, Measure, Place, is_ratio, words
from dr3.runs.outcomes import RETURN
from dr3.stats import Comparison, Interval, difference, improvement, iqm, mean, median

WORDS = {
    DOT: "feature dot product",
    COSINE: "cosine of the features",
    SRANK: "srank",
    NORM: "norm of the features",
    MEAN_Q: "mean Q",
    OUTSIDE: "share of Q out of bounds",
    SCORE: "normalised score",
    RETURN: "return",
    LOSS: "loss",
    TD_ERROR: "TD error",
    LAYERS: "share of the return that is left with the last layer re-initialised",
}
STATISTICS = {"mean": mean, "IQM": iqm, "median": median}
TAIL = 0.025  # of a rule's false alarms
DRAWN = 2_000  # swaps, where there are more of them
SETTLED = 0.25  # of its size at the end: what a metric that has settled may still change by
COLLAPSED = 0.5  # of the largest value that it had: what is below has collapsed
MARGIN = 10.0  # points of a normalised score: a tenth of what lies between a random agent and the data
RUN_AWAY = 0.05  # share of Q beyond what rewards allow
Size = Literal["larger", "smaller"]
By = Literal["pooled", "majority", "each"]


# --- The statistics ---


def mean_interval(strata: Sequence[Floats], level: float = 1 - 2 * TAIL) -> Interval:
    """The mean over strata of the means of runs, with Student's interval; strata may differ in spread (Satterthwaite).

    Args:
        strata: For each world the numbers of its runs, (n,); NaN where a run has none.
        level: What the interval covers.
    """
    known = [values[np.isfinite(values)] for values in strata]
    if not known or any(len(values) == 0 for values in known):
        return Interval(np.nan, np.nan, np.nan, level)
    estimate = float(np.mean([values.mean() for values in known]))
    if any(len(values) < 2 for values in known):
        return Interval(estimate, np.nan, np.nan, level)
    parts = np.array([values.var(ddof=1) / len(values) for values in known])
    free = np.array([len(values) - 1 for values in known])
    error = np.sqrt(parts.sum()) / len(known)
    if error == 0:
        return Interval(estimate, estimate, estimate, level)
    degrees = parts.sum() ** 2 / (parts**2 / free).sum()
    reach = float(stats.t.ppf((1 + level) / 2, degrees) * error)
    return Interval(estimate, estimate - reach, estimate + reach, level)


def swap_chance(first: Floats, second: Floats, statistic: Callable[[Floats, Floats], Floats]) -> float:
    """How often chance alone does as well: the share of all ways to swap the sides of pairs, or of 2,000 drawn ones.

    Args:
        first: (runs, worlds).
        second: (runs, worlds), the same seeds and data.
        statistic: Of the two sides, for each of their leading axes; larger is more of a gain.
    """
    pairs = first.size
    if pairs <= 11:
        swaps = (np.arange(2**pairs)[:, None] >> np.arange(pairs)) & 1
    else:  # with what was seen among them, as a test by drawn permutations needs it
        drawn = np.random.default_rng(0).integers(0, 2, (DRAWN, pairs))
        swaps = np.concatenate([np.zeros((1, pairs), drawn.dtype), drawn])
    swapped = swaps.reshape(-1, *first.shape).astype(bool)
    found = statistic(np.where(swapped, second, first), np.where(swapped, first, second))
    return float(np.mean(found >= statistic(first, second) - 1e-9))


def beats(first: Floats, second: Floats) -> Floats:
    """The probability that a run of `first` beats one of `second`, averaged over worlds: (…, runs, worlds) -> (…)."""
    here, there = first[..., :, None, :], second[..., None, :, :]
    return ((here > there) + 0.5 * (here == there)).mean(axis=(-3, -2, -1))


# --- Rules that compare two labels ---


@dataclass(frozen=True)
class Compare:
    """A metric of one label is larger or smaller than that of another.

    `by`: on the mean over worlds ("pooled"), on more than half of them ("majority"), or on each. A statistic other than
    the mean is judged by swapping.
    """

    metric: str
    label: str
    size: Size
    than: str
    measure: Measure = "late"
    by: By = "pooled"
    statistic: str = "mean"

    def __call__(self, evidence: Evidence) -> Answer:
        sign = 1 if self.size == "larger" else -1
        pairs = {
            place: [evidence.values(self.metric, one, place, self.measure) for one in (self.label, self.than)]
            for place in evidence.places(self.label, self.than)
        }
        measured = words(WORDS[self.metric], evidence.reached(self.measure))
        answer = by_world(
            f"The {measured} of {self.label} is {self.size} than that of {self.than}",
            {place: here - there for place, (here, there) in pairs.items()},
            lambda found: sign * (found.lower if sign > 0 else found.upper) > 0,
            opposite=lambda found: sign * (found.upper if sign > 0 else found.lower) < 0,
            ratio=is_ratio(self.metric),
            by=self.by,
            details={place: " against ".join(self._middle(side) for side in pair) for place, pair in pairs.items()},
            after=ran_away(evidence, self.label, self.than) if self.metric in (SCORE, RETURN) else "",
        )
        if self.statistic == "mean" or not pairs:
            return answer
        of: Any = STATISTICS[self.statistic]
        first, second = (np.stack([pair[side] for pair in pairs.values()], axis=1) for side in (0, 1))
        chance = swap_chance(first, second, lambda one, other: sign * (of(one) - of(other)))
        gap = float(of(first) - of(second))
        text = (
            f"Difference of {self.statistic}s {gap:+.3g}; swapping sides of pairs does as well in {chance:.1%} of cases"
        )
        return dataclasses.replace(
            answer,
            rule=f"{answer.rule.rpartition(',')[0]}, by the {self.statistic} over runs and worlds.",
            verdict=_shown(chance <= TAIL),
            sentence=f"{text}. Of means: {answer.sentence}",
            numbers={self.statistic: gap, "chance": chance, **answer.numbers},
            reason=f"{self.label} against {self.than}, {measured}: {text[:1].lower()}{text[1:]}.",
        )

    def _middle(self, values: Floats) -> str:
        known = values[np.isfinite(values)]
        middle = known.mean() if len(known) else np.nan
        return f"{np.exp(middle) if is_ratio(self.metric) else middle:.3g}"


def ends(metric: str, label: str, size: Size, than: str, by: By = "pooled") -> Compare:
    """Over the last fifth of training."""
    return Compare(metric, label, size, than, "late", by)


def gain(label: str, over: str, measure: Measure = "average", by: By = "pooled", statistic: str = "mean") -> Compare:
    """Of the normalised score."""
    return Compare(SCORE, label, "larger", over, measure, by, statistic)


@dataclass(frozen=True)
class WorstLarger:
    """A metric of the largest among some labels ends larger than that of another, on each world.

    Choosing the worst favours the claim, so each is held to its share of the false alarms (Bonferroni).
    """

    metric: str
    labels: tuple[str, ...]
    than: str

    def __call__(self, evidence: Evidence) -> Answer:
        level, cells = 1 - 2 * TAIL / len(self.labels), []
        for place in evidence.places(*self.labels, self.than):
            base = evidence.values(self.metric, self.than, place, "late")
            found = {
                one: mean_interval([evidence.values(self.metric, one, place, "late") - base], level)
                for one in self.labels
            }
            worst = max(found, key=lambda one: found[one].estimate)
            text = f"{worst} is the worst, {as_text(found[worst], ratio=is_ratio(self.metric))}"
            cells.append(Cell(place.world, _shown(any(one.lower > 0 for one in found.values())), text))
        rule = f"The {WORDS[self.metric]} of the worst of {', '.join(self.labels)} ends larger than with {self.than}"
        return _of_cells(rule, cells, *_each(cells)) if cells else nothing(rule)


@dataclass(frozen=True)
class NotWorse:
    """The mean score of one label is at most a margin below that of another: the whole interval is above it."""

    label: str
    than: str
    measure: Measure = "average"
    by: By = "pooled"

    def __call__(self, evidence: Evidence) -> Answer:
        measured = words(WORDS[SCORE], evidence.reached(self.measure))
        gaps = {
            place: evidence.values(SCORE, self.label, place, self.measure)
            - evidence.values(SCORE, self.than, place, self.measure)
            for place in evidence.places(self.label, self.than)
        }
        rule = f"The {measured} of {self.label} is at most {MARGIN:g} points below that of {self.than}"
        return by_world(
            rule, gaps, lambda found: found.lower > -MARGIN, opposite=lambda found: found.upper < -MARGIN, by=self.by
        )


@dataclass(frozen=True)
class Improves:
    """The probability of improvement is significant and meaningful (appendix A.8): above 0.5, upper limit above 0.75.

    Significance is by swapping pairs: the bootstrap's interval, which the paper takes, is too narrow for few runs.
    """

    label: str
    over: str
    measure: Measure = "final"

    def __call__(self, evidence: Evidence) -> Answer:
        rule = (
            f"{self.label} improves over {self.over}: the probability of improvement is above 0.5 beyond chance, and "
            "its interval reaches beyond 0.75"
        )
        if not (places := evidence.places(self.label, self.over)):
            return nothing(rule)
        sides = [evidence.scores(one, places, self.measure) for one in (self.label, self.over)]
        found = compared(evidence, self.label, self.over, self.measure).improvement
        chance, share = swap_chance(*sides, beats), found.probability
        text = (
            f"A run of {self.label} beats one of {self.over} with probability {share.estimate:.2f} "
            f"({share.lower:.2f}, {share.upper:.2f}); swapping sides of pairs does as well in {chance:.1%} of cases"
        )
        return Answer(
            f"{rule}.",
            _shown(chance <= TAIL and found.meaningful),
            f"{text}, by the {words('score', evidence.reached(self.measure))}.",
            {"probability": [share.estimate, share.lower, share.upper], "chance": chance},
            f"{text}.",
        )


def compared(evidence: Evidence, label: str, over: str, measure: Measure) -> Comparison:
    """One label against another, over all worlds that both have, as the paper compares them."""
    places = evidence.places(label, over)
    first, second = (evidence.scores(one, places, measure) for one in (label, over))
    chance = improvement(first, second, np.random.default_rng(0), replicates=REPLICATES)
    gap = difference(first, second, iqm, np.random.default_rng(0), paired=True, replicates=REPLICATES)
    return Comparison(label, over, chance, gap)


# --- Rules about one label over training ---

PARTS: dict[Measure, str] = {
    "start": "the start",
    "early": "between a tenth and half of training",
    "half": "about half of training",
    "late": "its last fifth",
}


@dataclass(frozen=True)
class Changes:
    """A metric of a label moves up or down from one fixed part of training to its last fifth."""

    metric: str
    label: str
    way: Literal["up", "down"]
    since: Measure = "half"

    def __call__(self, evidence: Evidence) -> Answer:
        up = self.way == "up"
        moves = {
            place: evidence.values(self.metric, self.label, place, "late")
            - evidence.values(self.metric, self.label, place, self.since)
            for place in evidence.places(self.label)
        }
        return by_world(
            f"The {WORDS[self.metric]} of {self.label} {'rises' if up else 'falls'} from {PARTS[self.since]} to "
            f"{PARTS['late']}",
            moves,
            lambda found: found.lower > 0 if up else found.upper < 0,
            ratio=is_ratio(self.metric),
            after=ran_away(evidence, self.label) if self.metric in (SCORE, RETURN) else "",
        )


def grows(metric: str, label: str, since: Measure = "half") -> Changes:
    return Changes(metric, label, "up", since)


def declines(label: str) -> Changes:
    """Of the normalised score, between two parts of training that were fixed beforehand."""
    return Changes(SCORE, label, "down", "early")


def falls(label: str) -> Changes:
    """From a solution that training started with."""
    return Changes(RETURN, label, "down", "start")


@dataclass(frozen=True)
class Within:
    """The interval of a number of each run, on the mean over worlds, lies within limits that were fixed beforehand."""

    rule: str
    label: str
    number: Callable[[Evidence, str, Place], Floats]
    low: float = -np.inf
    high: float = np.inf

    def __call__(self, evidence: Evidence) -> Answer:
        values = {place: self.number(evidence, self.label, place) for place in evidence.places(self.label)}
        return by_world(self.rule, values, lambda found: found.lower > self.low and found.upper < self.high, plain=True)


def settles(metric: str, label: str) -> Within:
    """Between half-way and the end it changes by less than a quarter of its size at the end."""

    def change(evidence: Evidence, label: str, place: Place) -> Floats:
        end = evidence.values(metric, label, place, "late")
        return (end - evidence.values(metric, label, place, "half")) / np.maximum(np.abs(end), 1e-9)

    rule = (
        f"The {WORDS[metric]} of {label} has settled: from half-way to the end it changes by less than {SETTLED:.0%} "
        "of its size"
    )
    return Within(rule, label, change, -SETTLED, SETTLED)


def level(metric: str, label: str, above: float) -> Within:
    """Over the last fifth of training it is above a level."""
    rule = f"The {WORDS[metric]} of {label} is above {above:g} over the last fifth of training"
    return Within(rule, label, lambda evidence, label, place: evidence.values(metric, label, place, "late"), low=above)


def stays_small(label: str) -> Within:
    """The TD error stays below a tenth of the square of Q's own size: the loss does not explain a fall."""

    def share(evidence: Evidence, label: str, place: Place) -> Floats:
        q = evidence.values(MEAN_Q, label, place, "late")
        return np.exp(evidence.values(TD_ERROR, label, place, "late")) / np.maximum(q**2, 1e-9)

    rule = f"The loss of {label} stays small: its TD error is below a tenth of the square of the mean Q"
    return Within(rule, label, share, high=0.1)


def collapse(metric: str, label: str, *, happens: bool) -> Within:
    """It ends below half of the largest value that it had, from the untrained network on; or does not."""

    def left(evidence: Evidence, label: str, place: Place) -> Floats:
        _, values = evidence.curve(metric, label, place)
        return np.exp(evidence.values(metric, label, place, "late")) / values.max(axis=1)

    verb = "collapses: it ends below" if happens else "does not collapse: it ends above"
    rule = f"The {WORDS[metric]} of {label} {verb} {COLLAPSED:.0%} of its largest value over training"
    return Within(rule, label, left, high=COLLAPSED) if happens else Within(rule, label, left, low=COLLAPSED)


@dataclass(frozen=True)
class Learned:
    """At least one of some labels is better than a random agent, early or late in training."""

    labels: tuple[str, ...]

    def __call__(self, evidence: Evidence) -> Answer:
        rule = f"{' or '.join(self.labels)} learned: its score is above a random agent's, early or late in training"
        parts: tuple[Measure, ...] = ("early", "late")
        chances = TAIL / len(parts) / len(self.labels)
        found = {
            (label, part): mean_interval(
                [evidence.values(SCORE, label, place, part) for place in evidence.places(label)], 1 - 2 * chances
            )
            for label in self.labels
            for part in parts
        }
        best = max(found, key=lambda one: np.nan_to_num(found[one].lower, nan=-np.inf))
        text = f"{best[0]} has a score of {found[best]} in {PARTS[best[1]]}"
        return Answer(f"{rule}.", _shown(found[best].lower > 0), f"{text}.", {}, f"Nothing was learned: {text}.")


@dataclass(frozen=True)
class Provided:
    """A rule that says something only where others hold: a fall must be there to be prevented."""

    needs: tuple[Check, ...]
    check: Check

    def __call__(self, evidence: Evidence) -> Answer:
        answer = self.check(evidence)
        for need in self.needs if answer.verdict != "cannot be compared" else ():
            found = need(evidence)
            if found.verdict != "shows":
                sentence = f"{answer.sentence} Not met: {found.rule} {found.sentence}"
                return dataclasses.replace(
                    answer, verdict="precondition not met", sentence=sentence, reason=f"Not met: {found.reason}"
                )
        return answer


# --- Answers ---


def by_world(
    rule: str,
    values: Mapping[Place, Floats],
    holds: Callable[[Interval], bool],
    *,
    opposite: Callable[[Interval], bool] | None = None,
    ratio: bool = False,
    plain: bool = False,
    by: By = "pooled",
    details: Mapping[Place, str] | None = None,
    after: str = "",
) -> Answer:
    """A rule about a number of each run, world by world and on the mean over worlds.

    Args:
        rule: What is claimed, without its full stop.
        values: The numbers of each world, (runs,).
        holds: Whether an interval of their mean fulfils the rule.
        opposite: Whether it shows the opposite: undecided is one thing, that another.
        ratio: The numbers are logarithms of ratios.
        plain: They are no differences.
        by: What decides.
        details: More words for each world.
        after: More words for all.
    """
    if not values:
        return nothing(rule)

    def text(found: Interval) -> str:
        return found.text("{:.3g}".format) if plain else as_text(found, ratio=ratio)

    cells = []
    for place, numbers in values.items():
        found = mean_interval([numbers])
        detail = f"{details[place]}, " if details else ""
        reverse = " (the opposite)" if opposite is not None and opposite(found) else ""
        cells.append(Cell(place.world, _shown(holds(found)), f"{detail}{text(found)}{reverse}"))
    whole = mean_interval(list(values.values()))
    decided = {
        "pooled": (_shown(holds(whole)), "on the mean over worlds"),
        "majority": _majority(cells),
        "each": _each(cells),
    }
    answer = _of_cells(rule, cells, *decided[by])
    return dataclasses.replace(
        answer,
        sentence=f"{text(whole)[:1].upper()}{text(whole)[1:]}; {answer.sentence}{after}",
        numbers={"mean": [whole.estimate, whole.lower, whole.upper]},
        reason=f"{rule}: {text(whole)}." if by == "pooled" else answer.reason,
    )


def nothing(rule: str) -> Answer:
    return Answer(f"{rule}.", "cannot be compared", "There is no evidence yet.", {}, "No evidence yet.")


def as_text(found: Interval, *, ratio: bool = False) -> str:
    """A difference, or how many times as large one is as the other."""
    if not ratio:
        return f"difference {found.text('{:+.3g}'.format)}"
    back = Interval(*(float(np.exp(value)) for value in (found.estimate, found.lower, found.upper)))
    return f"{back.text('{:.3g}'.format)} times as large"


def ran_away(evidence: Evidence, *labels: str) -> str:
    """Whether Q stayed within what rewards allow: a fall with Q inside is another failure than Q that ran away."""
    parts = []
    for label in labels:
        shares = {place.world: evidence.outside(label, place) for place in evidence.places(label)}
        known = {world: share for world, share in shares.items() if share is not None}
        gone = [f"{world} {share:.0%}" for world, share in known.items() if share > RUN_AWAY]
        if known:
            parts.append(f"{label} ran away (beyond: {', '.join(gone)})" if gone else f"{label} inside")
    return f" Q against what rewards allow: {'; '.join(parts)}." if parts else ""


def _of_cells(rule: str, cells: Sequence[Cell], verdict: Verdict, how: str) -> Answer:
    count = sum(cell.verdict == "shows" for cell in cells)
    parts = "; ".join(f"{cell.place}: {cell.sentence}" for cell in cells)
    return Answer(
        f"{rule}, {how}.", verdict, f"{parts}.", {}, f"{rule}: on {count} of {len(cells)} worlds.", tuple(cells)
    )


def _each(cells: Sequence[Cell]) -> tuple[Verdict, str]:
    return _shown(all(cell.verdict == "shows" for cell in cells)), "on each world"


def _majority(cells: Sequence[Cell]) -> tuple[Verdict, str]:
    count, of = sum(cell.verdict == "shows" for cell in cells), len(cells)
    chance = float(special.bdtrc(of // 2, of, TAIL))  # that more than half of the worlds show by chance alone
    return _shown(2 * count > of), f"on more than half of the worlds (by chance in {chance:.2%} of cases)"


def _shown(holds: bool) -> Verdict:
    return "shows" if holds else "does not show"
