"""What came out of a cure: a row for each remedy, and a ranking that says where it cannot tell."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from dr3.cures.churn import churn_of
from dr3.cures.plan import CurePlan, seconds_per_update
from dr3.cures.remedies import NONE, Treatment, about
from dr3.cures.values import cheap, estimated_values, policies_of
from dr3.data.transitions import Transitions
from dr3.diagnostics import Health, measure, select
from dr3.diagnostics.health import judge_runs
from dr3.files import for_json
from dr3.reports.compare import Score, score
from dr3.runs import Runs
from dr3.runs.outcomes import RETURN
from dr3.stats import Interval, forward_fill

Floats = NDArray[np.float64]

# By the doctor, at the last checkpoint: medians over seeds. Churn is beside them.
MEASURED = {
    "Q outside": "q/outside",
    "dot product": "features/dot_product",
    "srank": "rank/srank",
}


@dataclass(frozen=True)
class CureRow:
    """What one remedy came to."""

    name: str
    about: str
    flags: str
    seeds: int
    diverged: int
    healthy: int  # seeds without a verdict
    verdicts: Mapping[str, int]  # the doctor's, with the number of seeds that have it
    measured: Mapping[str, float]
    returns: Score | None  # at the end, with the gain over none; None where policies were not tried
    value: Interval | None  # of its policies by the log alone: the mean over seeds; None where it was not estimated
    by_seed: tuple[float, ...]
    seconds_per_update: float | None  # None of a rule, which trains nothing


@dataclass(frozen=True)
class RemedyRanking:
    """Who is best by returns, as far as these seeds can tell."""

    best: tuple[str, ...]  # the highest mean first; the others are not told apart from it
    sentence: str

    @property
    def decided(self) -> bool:
        return len(self.best) == 1


@dataclass(frozen=True)
class CureOutcome:
    """All of a cure."""

    data: str
    method: str
    steps: int
    rows: list[CureRow]
    ranking: RemedyRanking
    failed: Mapping[str, str]  # remedies without a result, and why

    def to_json(self) -> dict[str, Any]:
        """As plain numbers."""
        return for_json(asdict(self))


def gather_outcome(
    plan: CurePlan, out: Path, data: Transitions, failed: Mapping[str, str], *, estimate: bool = False
) -> CureOutcome:
    """Read the finished runs of a plan.

    Args:
        plan: What was trained.
        out: The folder of its runs.
        data: What they were trained on.
        failed: By the name of a treatment, why it has no run.
        estimate: Estimate what policies are worth by the log also where that takes long; where it takes a moment it is
            done anyway.
    """
    base = next(one for one in plan.treatments if one.name == NONE)
    seen = {
        one.name: _Seen(one, Runs(out / plan.task(one).name), data) for one in plan.treatments if one.name not in failed
    }
    first = seen[NONE].returns if NONE in seen else None
    values: dict[str, Interval] = {}
    if estimate or cheap(data, base.method.discount):
        policies = {name: policies_of(one.runs, one.steps) for name, one in seen.items()}
        values = estimated_values(policies, data, base.method.discount)
    rows = [_row(one, base, first if name != NONE else None, data, values.get(name)) for name, one in seen.items()]
    return CureOutcome(plan.data, base.method.name, plan.steps, rows, rank(rows), dict(failed))


class _Seen:
    """One treatment's members, each at its last checkpoint, or at the one that a rule takes."""

    def __init__(self, treatment: Treatment, runs: Runs, data: Transitions) -> None:
        self.treatment, self.runs = treatment, runs
        # The spectrum over all parameters would take longer than all else; every row does without it.
        measured = measure(runs, data, gradients=False)
        self.health: Health = judge_runs(runs, measured)
        steps = list(measured.steps)
        self.places = [len(steps) - 1] * len(runs)
        if treatment.rule is not None:
            choices = select(runs, treatment.rule, data).choices
            # Where no checkpoint qualifies the last one is kept: a user has to ship something.
            self.places = [len(steps) - 1 if one.step is None else steps.index(one.step) for one in choices]
        self.steps = [steps[place] for place in self.places]
        self.columns = {
            name: np.array([forward_fill(measured.columns[key])[n, place] for n, place in enumerate(self.places)])
            for name, key in MEASURED.items()
            if key in measured.columns
        } | {"churn": churn_of(runs, data, self.steps)}
        # Where rewards are 0 BEER's bound never acts: on which share of the pairs it could.
        for key in [key for key in runs.metrics if key.endswith("beer_can_act")]:
            self.columns["BEER can act"] = forward_fill(runs.metrics[key])[:, -1]

    @property
    def returns(self) -> Floats | None:
        """(seeds, 1), or None where a policy was not tried. One that diverged keeps the last it had."""
        if RETURN not in self.runs.evaluations:
            return None
        curves, tried = forward_fill(self.runs.evaluations[RETURN]), list(self.runs.evaluation_steps)
        latest = [np.searchsorted(tried, step, side="right") - 1 for step in self.steps]
        found = np.array([[curves[number, place]] for number, place in enumerate(latest)])
        return None if np.isnan(found).any() else found

    @property
    def healthy(self) -> int:
        return sum(not member.unhealthy[place] for member, place in zip(self.health.members, self.places, strict=True))

    @property
    def verdicts(self) -> dict[str, int]:
        at_end = self.treatment.rule is None
        names = (verdict.name for member in self.health.members for verdict in member.verdicts)
        return dict(Counter(names).most_common()) if at_end else {}


def _row(seen: _Seen, base: Treatment, first: Floats | None, data: Transitions, value: Interval | None) -> CureRow:
    treatment, returns = seen.treatment, seen.returns
    trains = treatment.rule is None
    return CureRow(
        name=treatment.name,
        about=about(treatment.name),
        flags=shlex.join(treatment.flags(base.method)) if trains else f"dr3 select RUN --rule {treatment.rule}",
        seeds=len(seen.runs),
        diverged=len(seen.runs.status["diverged"]),
        healthy=seen.healthy,
        verdicts=seen.verdicts,
        measured={name: float(np.median(values)) for name, values in seen.columns.items()},
        returns=None if returns is None else score(returns, first, paired=True),
        value=value,
        by_seed=() if returns is None else tuple(returns[:, 0].tolist()),
        seconds_per_update=seconds_per_update(treatment, data) if trains else None,
    )


def rank(rows: Sequence[CureRow]) -> RemedyRanking:
    """The highest mean return, and all that are not told apart from it.

    One is told apart if Student's interval of its paired difference to the highest lies below 0, at 1 - 0.05 / k for k
    such differences (Bonferroni): with many remedies one of them looks best by chance. (A bootstrap of two or three
    seeds that agree in sign has no 0 in it at any level.) Where `none` is among the best, no remedy is shown to help.

    Args:
        rows: What the remedies came to.
    """
    tried = [row for row in rows if row.by_seed]
    if len(tried) < 2:
        return RemedyRanking((), "No ranking: no policy was evaluated. There are only the doctor's columns to compare.")
    if min(row.seeds for row in tried) < 2:
        return RemedyRanking((), "No ranking: one seed has no interval. Give --seeds 5 or more.")
    order = sorted(tried, key=lambda row: -float(np.mean(row.by_seed)))
    leader, others = order[0], order[1:]
    level = 1 - 0.05 / len(others)
    best = [leader.name, *(row.name for row in others if not _below(row, leader, level))]
    seeds = leader.seeds
    if len(best) == 1:
        return RemedyRanking(
            (leader.name,), f"{leader.name} is best: its return is above that of every other, {seeds} seeds."
        )
    which = f"{', '.join(best[:-1])} and {best[-1]}"
    sentence = f"No winner: {which} are not told apart by {seeds} seeds"
    if NONE in best:
        return RemedyRanking(tuple(best), f"{sentence}, so no remedy is shown to be better than none.")
    if NONE not in {row.name for row in tried}:
        return RemedyRanking(tuple(best), f"{sentence}; none has no result to be measured against.")
    return RemedyRanking(tuple(best), f"{sentence}; all of them are above none.")


def _below(row: CureRow, leader: CureRow, level: float) -> bool:
    differences = np.array(row.by_seed) - np.array(leader.by_seed)
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return bool(differences.mean() + student_t.ppf(0.5 + level / 2, len(differences) - 1) * error < 0)
