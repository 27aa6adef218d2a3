"""Choosing c0 as the paper does on D4RL: without a simulator, by looking at Q (appendix E.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.transitions import Transitions
from dr3.diagnostics.checks import Thresholds, divergence
from dr3.diagnostics.measure import Measurements, measure
from dr3.errors import UserError
from dr3.files import for_json
from dr3.runs import Runs


@dataclass(frozen=True)
class CoefficientTrial:
    """One coefficient, with all seeds that it was tried with."""

    coefficient: float
    members: tuple[int, ...]  # numbers in the run
    verdicts: tuple[str | None, ...]  # of each member: in which way its Q-values diverged

    @property
    def diverged(self) -> bool:
        return any(verdict is not None for verdict in self.verdicts)


@dataclass(frozen=True)
class Tuning:
    """Every coefficient by size, what became of its Q-values, and the smallest under which they did not diverge."""

    trials: list[CoefficientTrial]
    measurements: Measurements

    @property
    def chosen(self) -> float | None:
        """The smallest coefficient with which no seed's Q-values diverged; None where there is none."""
        return next((trial.coefficient for trial in self.trials if not trial.diverged), None)

    def curve(self, name: str, trial: CoefficientTrial) -> NDArray[np.float64]:
        """One instrument over the checkpoints, for the seeds of a trial: (seeds, T)."""
        return self.measurements.columns[name][list(trial.members)]

    def to_json(self) -> dict[str, Any]:
        columns = self.measurements.columns
        return {
            "rule": "the smallest coefficient with which the Q-values of no seed diverge, in either direction",
            "chosen": self.chosen,
            "lowest_return": float(columns["q/lowest_return"].min()),
            "largest_return": float(columns["q/largest_return"].max()),
            "steps": self.measurements.steps.tolist(),
            "trials": [
                {
                    "coefficient": trial.coefficient,
                    "diverged": trial.diverged,
                    "verdicts": list(trial.verdicts),
                    "mean_q": for_json(self.curve("q/mean", trial).tolist()),
                    "outside": for_json(self.curve("q/outside", trial).tolist()),
                }
                for trial in self.trials
            ],
        }


def tuning_of(runs: Runs, data: Transitions | None = None, *, thresholds: Thresholds | None = None) -> Tuning:
    """Judge a population whose members differ in the coefficient of their regularizer, and in their seed.

    Q-values count as diverged as they do for the doctor (`checks.divergence`): at the last checkpoint more than 5 % of
    them lie beyond any return that the data's rewards allow, above or below, each with 5 % of slack; or training had to
    stop because something was no longer finite. Values that left and came back have not diverged *eventually*.

    Args:
        runs: The run.
        data: What it was trained on; None loads it from where it was.
        thresholds: From where on a number counts as a finding.
    """
    measured = measure(runs, data, gradients=False)
    frozen = runs.status["diverged"]
    groups: dict[float, list[int]] = {}
    for number, member in enumerate(runs.members):
        if member.regularizer is None:
            raise UserError(f"{runs.path} has a member without a regularizer, so there is no coefficient to choose.")
        groups.setdefault(float(member.regularizer.coefficient), []).append(number)

    def verdict(number: int) -> str | None:
        if str(number) in frozen:
            return f"Not finite after {frozen[str(number)]:,} updates: divergence."
        sign = divergence(measured.steps, measured.of(number), thresholds or Thresholds())
        return sign.sentence(len(measured.steps) - 1) if sign.holds[-1] else None

    trials = [
        CoefficientTrial(c0, tuple(group), tuple(verdict(n) for n in group)) for c0, group in sorted(groups.items())
    ]
    return Tuning(trials, measured)
