"""The same training with different regularizers, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.errors import UserError
from dr3.files import for_json
from dr3.notation import spell
from dr3.reports.curves import Panel
from dr3.reports.names import algorithm_name
from dr3.runs import Runs
from dr3.runs.outcomes import RETURN
from dr3.stats import Interval, average_over_checkpoints, difference, forward_fill, improvement, interval, mean
from dr3.stats.resampling import too_few

MEASURED = {
    "dot product": "features/dot_product",
    "cosine": "features/cosine",
    "srank": "features/srank",
    "mean Q": "q/data_mean",
}


@dataclass(frozen=True)
class Score:
    """A return, and by how much it is above the first regularizer's: the same seeds on both sides."""

    mean: float
    interval: Interval | None  # of the mean; None for fewer than three seeds
    gain: (
        Interval | None
    )  # None for the first regularizer itself; without limits where a side has fewer than three seeds
    improvement: Interval | None  # the probability that a run with it beats one of the first; None without limits


@dataclass(frozen=True)
class Side:
    """What came out with one regularizer."""

    regularizer: str
    seeds: int
    diverged: int
    final: Score | None  # of the last checkpoint; None where policies were not evaluated
    average: Score | None  # over 20 checkpoints evenly spread over training, the paper's measure of stability
    measured: Mapping[str, float]  # medians over seeds at the end


def compare(runs: Runs, *, replicates: int = 10_000) -> list[Side]:
    """One entry for each regularizer of a population, the first one being what the others are measured against.

    A member that diverged stays what it was before: it keeps the last return and the last measurements it had.
    """
    groups = members_by_regularizer(runs)
    sides: list[Side] = []
    first: dict[str, NDArray[np.float64]] = {}
    for word, members in groups.items():
        scores = (
            returns_of(runs.evaluation_steps, runs.evaluations[RETURN][members]) if RETURN in runs.evaluations else {}
        )
        summaries = {
            key: score(value, first.get(key), paired=len(value) == len(first.get(key, ())), replicates=replicates)
            for key, value in scores.items()
        }
        first = first or scores
        sides.append(
            Side(
                regularizer=word,
                seeds=len(members),
                diverged=sum(str(number) in runs.status["diverged"] for number in members),
                final=summaries.get("final"),
                average=summaries.get("average"),
                measured={name: last_median(runs.metrics[key][members]) for name, key in MEASURED.items()},
            )
        )
    return sides


def as_json(runs: Runs, sides: list[Side]) -> dict[str, Any]:
    """Everything in the comparison as plain numbers."""
    listed = [for_json(asdict(side)) for side in sides]
    return {"run": str(runs.path), "steps": runs.status["step"], "sides": listed}


def panels(runs: Runs) -> list[Panel]:
    """Returns over training where there are any, then the four instruments: a line for each regularizer."""
    groups = {_name(runs, word, members): members for word, members in members_by_regularizer(runs).items()}
    drawn = [_panel(name, runs.steps, runs.metrics[key]) for name, key in MEASURED.items()]
    if RETURN in runs.evaluations:
        drawn.insert(0, _panel("return", runs.evaluation_steps, runs.evaluations[RETURN]))
    return [
        Panel(name, name, {word: (steps, values[members]) for word, members in groups.items()}, log=log)
        for name, steps, values, log in drawn
    ]


def members_by_regularizer(runs: Runs) -> dict[str, list[int]]:
    """The numbers of the members that share a regularizer, by its word, in order."""
    if len({repr(member.method) for member in runs.members}) > 1:
        raise UserError(f"{runs.path} varies its method's settings; a comparison is of regularizers alone.")
    groups: dict[str, list[int]] = {}
    for number, member in enumerate(runs.members):
        groups.setdefault("none" if member.regularizer is None else spell(member.regularizer), []).append(number)
    return groups


def _name(runs: Runs, word: str, members: list[int]) -> str:
    """As people say it: "CQL, 3 seeds" and "CQL + DR3 0.03, 3 seeds", where a command says none and dr3:0.03."""
    method = runs.members[members[0]].method.name
    seeds = f"{len(members)} seed{'' if len(members) == 1 else 's'}"
    return f"{algorithm_name(method if word == 'none' else f'{method}+{word}')}, {seeds}"


def _panel(name: str, steps: NDArray[Any], values: NDArray[Any]) -> tuple[str, NDArray[Any], NDArray[Any], bool]:
    """Dot products span orders of magnitude; ReLU features keep them positive, others may not."""
    return name, steps, values, name == "dot product" and bool(np.nanmin(values) > 0)


def returns_of(steps: NDArray[Any], curves: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Final and average returns, each (seeds, 1), of returns (seeds, T); empty if no trained policy was evaluated."""
    trained = forward_fill(curves)[:, steps > 0]
    if trained.shape[1] == 0 or np.isnan(trained).any():
        return {}
    return {"final": trained[:, -1:], "average": average_over_checkpoints(trained[:, None])}


def score(
    values: NDArray[np.float64], first: NDArray[np.float64] | None, *, paired: bool, replicates: int = 10_000
) -> Score:
    """The mean of returns (seeds, 1), and its gain over the `first`; `paired`: row i shares its seed with theirs."""
    # Every interval from a generator of its own: another regularizer in the list changes none of these numbers.
    few = too_few(values) or (first is not None and too_few(first))
    own = None if few else interval(values, mean, np.random.default_rng(0), replicates=replicates)
    if first is None:
        return Score(float(values.mean()), own, None, None)
    gain = difference(values, first, mean, np.random.default_rng(0), paired=paired, replicates=replicates)
    better = improvement(values, first, np.random.default_rng(0), paired=paired, replicates=replicates).probability
    if few:  # as `dr3 stats` has it
        return Score(float(values.mean()), own, gain.without_limits(), None)
    return Score(float(values.mean()), own, gain, better if better.has_limits else None)


def last_median(curves: NDArray[np.float64]) -> float:
    """The median over members of what was last known of each, of (members, T); NaN before the first measurement."""
    return float(np.median(forward_fill(curves)[:, -1])) if curves.shape[1] else float("nan")
