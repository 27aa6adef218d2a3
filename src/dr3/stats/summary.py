"""Everything `dr3 stats` says about a results file, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dr3.errors import UserError
from dr3.files import for_json
from dr3.stats.aggregates import Floats, Missing, iqm, mean, median, optimality_gap
from dr3.stats.comparison import Improvement, improvement
from dr3.stats.matrices import Matrices, ScoreTable
from dr3.stats.resampling import Interval, difference, intervals, too_few

RAW_STATISTICS = {"IQM": iqm, "median": median, "mean": mean}
STATISTICS = {**RAW_STATISTICS, "optimality gap": optimality_gap}  # a gap to 100 %: raw returns have none


@dataclass(frozen=True)
class Comparison:
    """One algorithm against its baseline: how often it is better, and by how much its IQM is higher."""

    algorithm: str
    baseline: str
    improvement: Improvement
    iqm_difference: Interval


@dataclass(frozen=True)
class Measure:
    """One way to score a run ("final" or "average" over training) and all statistics of it.

    `matrices` holds the tasks that every algorithm has; `left_out` names the others, and `matrices.holes` the missing
    runs among those used.
    """

    name: str
    matrices: Matrices
    left_out: tuple[str, ...]
    intervals: dict[str, dict[str, Interval]]
    comparisons: tuple[Comparison, ...]


def summarise(
    table: ScoreTable,
    rng: np.random.Generator,
    *,
    baseline: str | None = None,
    paired: bool = False,
    checkpoints: int | None = 20,
    level: float = 0.95,
    replicates: int = 50_000,
    missing: Missing = "error",
) -> list[Measure]:
    """Final scores and, if there is more than one checkpoint of trained policies, average scores over training.

    Args:
        table: Scores by algorithm, task, run and checkpoint.
        rng: Draws the resamples.
        baseline: What to compare with; None chooses by the names.
        paired: Run i of both has the same seed: resample them together.
        checkpoints: How many checkpoints to average over; None is all.
        level: The share that an interval covers.
        replicates: How many resamples.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    measures = {"final": table.final()}
    if any(len(table.trained_steps(task)) > 1 for task in table.tasks):
        measures["average"] = table.average(checkpoints)
    pairs = comparison_pairs(table.algorithms, baseline)
    result = []
    for name, full in measures.items():
        if full.holes and missing == "error":
            raise UserError(
                f"{len(full.holes)} runs are missing for the {name} score, the first being {full.holes[0]}; complete "
                "them, or say missing='ignore' (--missing ignore) to use the runs there are."
            )
        if not full.common_tasks:
            raise UserError(f"there is no task on which every algorithm has a {name} score, so nothing to compare.")
        used = full.on(full.common_tasks)
        statistics = RAW_STATISTICS if "raw" in {table.scales[task] for task in used.tasks} else STATISTICS
        result.append(
            Measure(
                name,
                used,
                tuple(task for task in full.tasks if task not in used.tasks),
                _of_enough(
                    used.scores,
                    intervals(used.scores, statistics, rng, level=level, replicates=replicates, missing=missing),
                ),
                tuple(
                    compare(used, *pair, rng, paired=paired, level=level, replicates=replicates, missing=missing)
                    for pair in pairs
                ),
            )
        )
    return result


def _of_enough(scores: Mapping[str, Floats], found: dict[str, dict[str, Interval]]) -> dict[str, dict[str, Interval]]:
    """Without limits where the runs are too few for any."""
    return {
        name: {key: of.without_limits() if too_few(scores[name]) else of for key, of in values.items()}
        for name, values in found.items()
    }


def comparison_pairs(algorithms: tuple[str, ...], baseline: str | None) -> list[tuple[str, str]]:
    """(algorithm, baseline) pairs: all against the named one; or "X+…" against X wherever both are there; or else all
    against the first.

    Args:
        algorithms: Their names.
        baseline: What to compare with; None chooses by the names.
    """
    if baseline is not None:
        if baseline not in algorithms:
            raise UserError(f"there is no algorithm named {baseline!r} in the results, only {', '.join(algorithms)}.")
        return [(name, baseline) for name in algorithms if name != baseline]
    plain = {name.replace(" ", ""): name for name in algorithms}
    bases = [(name, plain.get(key.rpartition("+")[0])) for key, name in plain.items()]
    pairs = [(name, base) for name, base in bases if base is not None]
    return pairs or [(name, algorithms[0]) for name in algorithms[1:]]


def profile_thresholds(scores: dict[str, Floats], points: int = 101) -> Floats:
    """Evenly spaced thresholds over the middle 96% of all scores: one exploding task must not fill the axis.

    Args:
        scores: (runs, tasks) by algorithm.
        points: How many thresholds.
    """
    pooled = np.concatenate([matrix.ravel() for matrix in scores.values()])
    low, high = np.nanquantile(pooled, [0.02, 0.98])
    margin = 0.05 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, points)


def compare(
    used: Matrices,
    algorithm: str,
    baseline: str,
    rng: np.random.Generator,
    *,
    paired: bool = False,
    level: float = 0.95,
    replicates: int = 50_000,
    missing: Missing = "error",
) -> Comparison:
    """One algorithm of `used` against another; `paired` needs them to have the same seeds.

    Args:
        used: Scores by algorithm.
        algorithm: The name of the one.
        baseline: The name of the other.
        rng: Draws the resamples.
        paired: Run i of both has the same seed: resample them together.
        level: The share that an interval covers.
        replicates: How many resamples.
        missing: What to do about a missing run (NaN): "error" refuses it, "ignore" leaves it out.
    """
    if paired and used.seeds[algorithm] != used.seeds[baseline]:
        raise UserError(f"{algorithm} and {baseline} have different seeds: leave out --paired.")
    first, second = used.scores[algorithm], used.scores[baseline]
    better = improvement(first, second, rng, paired=paired, level=level, replicates=replicates, missing=missing)
    by = difference(first, second, iqm, rng, paired=paired, level=level, replicates=replicates, missing=missing)
    if too_few(first, second):
        better, by = replace(better, probability=better.probability.without_limits()), by.without_limits()
    return Comparison(algorithm, baseline, better, by)


def as_dict(table: ScoreTable, measures: list[Measure]) -> dict[str, Any]:
    """Everything, for JSON; a missing run is null, and so is a limit that there is not.

    Args:
        table: Scores by algorithm, task, run and checkpoint.
        measures: What `summarise` gave.
    """
    return for_json(
        {
            "scales": table.scales,
            "measures": {measure.name: _measure_as_dict(measure) for measure in measures},
        }
    )


def _measure_as_dict(measure: Measure) -> dict[str, Any]:
    used = measure.matrices
    return {
        "tasks": used.tasks,
        "seeds": used.seeds,
        "scores": {name: matrix.tolist() for name, matrix in used.scores.items()},
        "missing": [asdict(hole) for hole in used.holes],
        "left_out": measure.left_out,
        "intervals": {
            name: {key: asdict(value) for key, value in values.items()} for name, values in measure.intervals.items()
        },
        "comparisons": [
            asdict(item) | {"significant": item.improvement.significant, "meaningful": item.improvement.meaningful}
            for item in measure.comparisons
        ],
    }
