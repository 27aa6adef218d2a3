"""What a report shows, before any of it is markup: groups, verdicts, panels and the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dr3.diagnostics import Health
from dr3.reports.compare import MEASURED, Score, last_median, returns_of, score
from dr3.reports.curves import Panel
from dr3.reports.groups import Group, group
from dr3.runs import Runs
from dr3.runs.outcomes import RETURN

WORDS = {
    "return": "What the learned policy earns, at each evaluation.",
    "dot product": "φ(s, a)·φ(s′, a′) over both sides of a backup. Growth without bound is co-adaptation.",
    "mean Q": "The mean of Q(s, a) over the probe set.",
    "srank": "How many directions the features use: those that hold 99 % of the singular values’ sum.",
    "cosine": "Of the angle between the features of both sides of a backup; 1 means that they are parallel.",
    "distance from instability": "The smallest real part of K’s eigenvalues over the largest modulus, {of}. "
    "Below 0 no step size makes TD-learning stable.",
    "largest stable step": "The step size below which plain TD-learning would contract, {of}; 0 where none does.",
}


@dataclass(frozen=True)
class Reading:
    """One run as it is now, with its verdicts, or with the reason why there are none (yet, or for the last steps)."""

    runs: Runs
    health: Health | None
    note: str = ""


@dataclass(frozen=True)
class ReportRow:
    """One group's line of the table."""

    group: Group
    scores: Mapping[str, Score]  # `final` and `average`; empty where policies were not evaluated
    measured: Mapping[str, float]  # medians over seeds at the end


@dataclass(frozen=True)
class Content:
    """All of a report."""

    readings: list[Reading]
    groups: list[Group]
    panels: list[Panel]
    rows: list[ReportRow]

    @property
    def reference(self) -> Group:
        """What gains are measured against: the first group that trained without a regularizer, else the first."""
        return next((one for one in self.groups if not one.regularized), self.groups[0])


def gather(readings: Sequence[Reading]) -> Content:
    """Read the run folders once."""
    groups = group([reading.runs for reading in readings])
    content = Content(list(readings), groups, _panels(readings, groups), [])
    content.rows.extend(_rows(readings, groups, content.reference))
    return content


def _panels(readings: Sequence[Reading], groups: Sequence[Group]) -> list[Panel]:
    runs = [reading.runs for reading in readings]
    metrics = [one.steps for one in runs], [one.metrics for one in runs]
    evaluated = [one.evaluation_steps for one in runs], [one.evaluations for one in runs]
    judged = [reading.health.measurements if reading.health else None for reading in readings]
    measured = (
        [np.zeros(0, np.int64) if found is None else found.steps for found in judged],
        [{} if found is None else found.columns for found in judged],
    )
    # One spectrum for all runs: of the last layer alone where a single one of them has no other.
    everywhere = all("spectrum/all/margin" in columns for columns in measured[1] if columns)
    which, of = ("all", "over all parameters") if everywhere else ("last_layer", "over the last layer alone")
    wanted = [("return", evaluated, RETURN)]
    wanted += [(name, metrics, MEASURED[name]) for name in ("dot product", "mean Q", "srank", "cosine")]
    wanted += [
        ("distance from instability", measured, f"spectrum/{which}/margin"),
        ("largest stable step", measured, f"spectrum/{which}/largest_step"),
    ]
    panels = []
    for name, (steps, columns), key in wanted:
        lines = {one.name: one.gather(steps, columns, key) for one in groups}
        finite = np.concatenate([values[np.isfinite(values)] for _, values in lines.values()])
        if len(finite):
            log = name in ("dot product", "largest stable step") and finite.min() >= 0 and finite.max() > 0
            panels.append(Panel(name, WORDS[name].format(of=of), lines, log, _level(name, finite, measured[1])))
    return panels


def _level(
    name: str, shown: NDArray[np.float64], measured: Sequence[Mapping[str, NDArray[np.float64]]]
) -> tuple[str, float] | None:
    """What a panel's curves are compared with."""
    if name == "distance from instability":
        return "unstable below", 0.0
    bounds = {float(columns["q/largest_return"].max()) for columns in measured if "q/largest_return" in columns}
    # Far below the bound the line would only squeeze the curves.
    if name == "mean Q" and len(bounds) == 1 and shown.max() >= 0.5 * max(bounds):
        return "largest possible return", max(bounds)
    return None


def _rows(readings: Sequence[Reading], groups: Sequence[Group], reference: Group) -> list[ReportRow]:
    runs = [reading.runs for reading in readings]
    evaluated = [one.evaluation_steps for one in runs], [one.evaluations for one in runs]
    metrics = [one.steps for one in runs], [one.metrics for one in runs]
    first = returns_of(*reference.gather(*evaluated, RETURN))
    rows = []
    for one in groups:
        scores = {}
        for key, values in returns_of(*one.gather(*evaluated, RETURN)).items():
            compared = None if one is reference or one.data != reference.data else first.get(key)
            scores[key] = score(values, compared, paired=one.seeds == reference.seeds)
        last = {name: one.gather(*metrics, key)[1] for name, key in MEASURED.items()}
        rows.append(ReportRow(one, scores, {name: last_median(values) for name, values in last.items()}))
    return rows
