"""How good rules and verdicts are, where true returns are known: for runs that were evaluated in a world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from dr3.data.transitions import Transitions
from dr3.diagnostics.checks import Thresholds, signs, unhealthy_at
from dr3.diagnostics.measure import measure
from dr3.diagnostics.selection import best, scores_of
from dr3.errors import UserError
from dr3.training import Runs

Floats = NDArray[np.float64]
RETURN = "evaluation/return"
LOOK_BACK = 3  # checkpoints whose mean is what a policy was worth when a sign showed
DROP = 0.9  # a drop: the mean return of all later checkpoints is below this share of that
LEARNED = 0.01  # below this share of the best return seen in a world, there is nothing to lose


@dataclass(frozen=True)
class Trial:
    """One member: what each rule thought of its checkpoints, and what they were really worth."""

    task: str
    algorithm: str
    steps: NDArray[np.int64]  # (T,) without the initial weights
    returns: Floats  # (T,)
    scores: dict[str, Floats]  # {rule: (T,)}
    unhealthy: NDArray[np.bool_]  # (T,)
    shown: dict[str, NDArray[np.bool_]]  # {sign: (T,)}

    def regret(self, rule: str) -> float:
        """Return of the best checkpoint minus return of the chosen one."""
        return float(self.returns.max() - self.returns[best(self.scores[rule])])

    def regret_of_any(self) -> float:
        """The same for a checkpoint drawn at random: what a rule has to beat."""
        return float(self.returns.max() - self.returns.mean())

    def correlation(self, rule: str) -> float:
        """Spearman's rank correlation of scores and returns; NaN where either does not vary."""
        scores = self.scores[rule]
        if not np.isfinite(scores).all() or np.ptp(scores) == 0 or np.ptp(self.returns) == 0:
            return float("nan")
        return float(spearmanr(scores, self.returns).statistic)


def trials(
    runs: Runs,
    rules: Sequence[str],
    held_out: Callable[[Runs], Transitions | None] = lambda runs: None,
    *,
    gradients: bool = True,
) -> list[Trial]:
    """Every member of an evaluated run. `gradients` as in `measure`: without them the spectrum is the last layer's."""
    if RETURN not in runs.evaluations:
        raise UserError(f"{runs.path} was never tried in a world: without true returns no rule can be measured.")
    steps = [step for step in runs.checkpoints if step > 0]
    scores = scores_of(runs, rules, steps, held_out=held_out(runs), gradients=gradients)
    measured = measure(runs, steps=steps, gradients=gradients)
    places = [int(np.flatnonzero(runs.evaluation_steps == step)[0]) for step in steps]
    made = []
    for number, member in enumerate(runs.members):
        of = measured.of(number)
        found = signs(measured.steps, of, Thresholds())
        made.append(
            Trial(
                task=runs.config["data"]["world"] or runs.config["data"]["name"],
                algorithm=member.algorithm,
                steps=measured.steps,
                returns=runs.evaluations[RETURN][number, places],
                scores={rule: values[number] for rule, values in scores.items()},
                unhealthy=unhealthy_at(found),
                shown={sign.name: sign.holds for sign in found},
            )
        )
    return [trial for trial in made if np.isfinite(trial.returns).all()]


@dataclass(frozen=True)
class Outcomes:
    """How often a drop in true return followed, counted over checkpoints that had something to lose."""

    dropped: int
    counted: int

    @property
    def share(self) -> float:
        return self.dropped / self.counted if self.counted else float("nan")


def outcomes(of: Sequence[Trial]) -> dict[str, Outcomes]:
    """After the first checkpoint of a member that showed a sign, any or each by name; and after all that showed none.

    The last is what would have happened anyway: a sign is worth something only where its share is larger. What is only
    a note (`Sign.note`) is shown by its name, and counts as none.
    """
    first = {"any sign": lambda trial: _first(trial.unhealthy)}
    for name in of[0].shown:
        first[name] = lambda trial, name=name: _first(trial.shown[name])
    first["no sign"] = lambda trial: np.flatnonzero(~trial.unhealthy).tolist()
    scale = best_returns(of)
    table = {}
    for name, checkpoints in first.items():
        fell = [_fell(trial, t, scale[trial.task]) for trial in of for t in checkpoints(trial)]
        counted = [one for one in fell if one is not None]
        table[name] = Outcomes(sum(counted), len(counted))
    return table


def _first(shown: NDArray[np.bool_]) -> list[int]:
    return [int(np.argmax(shown))] if shown.any() else []


def _fell(trial: Trial, t: int, scale: float) -> bool | None:
    """Whether returns dropped after checkpoint number t; None where nothing came after it, or was there to lose."""
    worth = trial.returns[max(0, t + 1 - LOOK_BACK) : t + 1].mean()
    later = trial.returns[t + 1 :]
    return bool(later.mean() < DROP * worth) if len(later) and worth > LEARNED * scale else None


def best_returns(of: Sequence[Trial]) -> dict[str, float]:
    """The best return that any checkpoint reached in each world."""
    tasks = sorted({trial.task for trial in of})
    return {task: max(float(t.returns.max()) for t in of if t.task == task) for task in tasks}


def as_matrix(of: Sequence[Trial], number: Callable[[Trial], float]) -> Floats:
    """A number of every member as the statistics take it: (runs, tasks), NaN where a task has fewer runs."""
    tasks = sorted({trial.task for trial in of})
    columns = [[number(trial) for trial in of if trial.task == task] for task in tasks]
    matrix = np.full((max(map(len, columns)), len(tasks)), np.nan)
    for place, column in enumerate(columns):
        matrix[: len(column), place] = column
    return matrix


def to_json(trial: Trial) -> dict[str, Any]:
    """The raw numbers behind every table."""
    return {
        "task": trial.task,
        "algorithm": trial.algorithm,
        "steps": trial.steps.tolist(),
        "returns": trial.returns.tolist(),
        "scores": {rule: [float(s) if np.isfinite(s) else None for s in of] for rule, of in trial.scores.items()},
        "signs": {name: holds.tolist() for name, holds in trial.shown.items()},
    }
