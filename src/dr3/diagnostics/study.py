"""How good rules and verdicts are, where true returns are known: for runs that were evaluated in a world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from dr3.data.transitions import Transitions
from dr3.diagnostics.checks import Thresholds, signs, unhealthy_at
from dr3.diagnostics.health import label_of
from dr3.diagnostics.measure import HELD_OUT_ERROR, Measurements, held_out_errors, measure
from dr3.diagnostics.ranking import rankings_of
from dr3.diagnostics.selection import choose, fqe_of_runs, frozen, scores_of, steps_for
from dr3.errors import UserError
from dr3.files import for_json
from dr3.runs import Runs
from dr3.runs.outcomes import DISCOUNTED_VALUE, RETURN

Floats = NDArray[np.float64]
LOOK_BACK = 3  # checkpoints whose mean is what a policy was worth when a sign showed
DROP = 0.9  # a drop: the mean return of all later checkpoints is below this share of that
LEARNED = 0.01  # below this share of the range of returns seen in a world, there is nothing to lose


@dataclass(frozen=True)
class RuleTrial:
    """One member: what each rule thought of its checkpoints, and what they were really worth."""

    member: str  # with its run folder
    task: str
    algorithm: str
    steps: NDArray[np.int64]  # (T,) those that were evaluated, without the initial weights
    returns: Floats  # (T,)
    scores: dict[str, Floats]  # {rule: (T,)}
    unhealthy: NDArray[np.bool_]  # (T,)
    shown: dict[str, NDArray[np.bool_]]  # {sign: (T,)}
    untried: int = 0  # how many more checkpoints there are, whose returns nobody knows
    diverged: int = 0  # how many of those are from when the member had diverged

    def regret(self, rule: str) -> float:
        """Return of the best checkpoint minus return of the chosen one; of any, where the rule chooses none."""
        place = choose(rule, self.scores[rule])
        return self.regret_of_any() if place is None else float(self.returns.max() - self.returns[place])

    def regret_of_any(self) -> float:
        """The same for a checkpoint drawn at random: what a rule has to beat."""
        return float(self.returns.max() - self.returns.mean())

    def correlation(self, rule: str) -> float:
        """Spearman's rank correlation of returns and the scores that are finite; NaN where either does not vary."""
        known = np.isfinite(self.scores[rule])
        scores, returns = self.scores[rule][known], self.returns[known]
        if not known.any() or np.ptp(scores) == 0 or np.ptp(returns) == 0:
            return float("nan")
        return float(spearmanr(scores, returns).statistic)


def trials(
    runs: Runs,
    rules: Sequence[str],
    data: Transitions | None = None,
    *,
    held_out: Transitions | None = None,
    gradients: bool = True,
    measuring: Callable[..., Measurements] = measure,
    evaluating: Callable[..., Floats] = fqe_of_runs,
) -> list[RuleTrial]:
    """Every member of an evaluated run. Without `gradients` the spectrum is the last layer's.

    `measuring` is called as `measure` is, `evaluating` as `fqe_of_runs`; both may recall what was found before.
    """
    if RETURN not in runs.evaluations:
        raise UserError(f"{runs.path} was never evaluated in a world: without true returns no rule can be measured.")
    steps = steps_for(runs, rules)
    errors = {} if held_out is None else {HELD_OUT_ERROR: held_out_errors(runs, held_out, steps)}
    measured = measuring(runs, data, steps=steps, gradients=gradients)
    known = replace(measured, columns=measured.columns | errors)
    # A rule may not read what the run earned when it was tried, as the doctor does.
    blind = replace(
        known, columns={name: of for name, of in known.columns.items() if not name.startswith("evaluation/")}
    )
    scores = {rule: scores_of(runs, rule, steps, data, blind, evaluating) for rule in rules}
    returns, stopped = _returns(runs, steps), frozen(runs, steps)
    made = []
    for number, member in enumerate(runs.members):
        found = signs(measured.steps, measured.of(number), Thresholds())
        tried = np.isfinite(returns[number])
        made.append(
            RuleTrial(
                member=f"{runs.path}, {label_of(runs, number)}",
                task=runs.config.data.world or runs.config.data.name,
                algorithm=member.algorithm,
                steps=measured.steps[tried],
                returns=returns[number, tried],
                scores={rule: of[number, tried] for rule, of in scores.items()},
                unhealthy=unhealthy_at(found)[tried],
                shown={sign.name: sign.holds[tried] for sign in found},
                untried=int(np.sum(~tried)),
                diverged=int(np.sum(~tried & stopped[number])),
            )
        )
    return made


def _returns(runs: Runs, steps: Sequence[int]) -> Floats:
    """(members, T), NaN where a checkpoint was not evaluated; those of a member that has diverged no longer are."""
    place = {int(step): number for number, step in enumerate(runs.evaluation_steps)}
    unknown = np.full(len(runs), np.nan)
    seen = runs.evaluations[RETURN]
    return np.stack([seen[:, place[step]] if step in place else unknown for step in steps], axis=1)


def comparable(of: Sequence[RuleTrial]) -> tuple[list[RuleTrial], list[str]]:
    """The trials by which rules can be compared, and a sentence on each thing that was left out."""
    tried = [trial for trial in of if len(trial.steps)]
    flat = {task: seen for task, seen in ranges(tried).items() if seen.span == 0}
    left_out = [_untried(trial) for trial in of if trial.untried]
    left_out += [f"{task}: left out; every checkpoint earned {seen.low:g} there." for task, seen in flat.items()]
    return [trial for trial in tried if trial.task not in flat], left_out


def _untried(trial: RuleTrial) -> str:
    tried, everything = len(trial.steps), len(trial.steps) + trial.untried
    others = trial.untried - trial.diverged
    if not others:
        why = "it diverged" if tried else "it diverged before"
    elif trial.diverged:
        why = f"it diverged, and of {others} before that evaluations.jsonl holds none"
    else:
        why = "evaluations.jsonl holds none"
    if not tried:
        return f"{trial.member}: left out; none of its {everything} checkpoints has a return ({why})."
    return f"{trial.member}: {tried} of its {everything} checkpoints count; the others have no return ({why})."


@dataclass(frozen=True)
class Outcomes:
    """How often a drop in true return followed, counted over checkpoints that had something to lose."""

    dropped: int
    counted: int

    @property
    def share(self) -> float:
        return self.dropped / self.counted if self.counted else float("nan")


def outcomes(of: Sequence[RuleTrial]) -> dict[str, Outcomes]:
    """After the first checkpoint of a member that showed a sign, any or each by name; and after all that showed none.

    The last is what would have happened anyway: a sign is worth something only where its share is larger. What is only
    a note (`Sign.note`) is shown by its name, and counts as none.
    """
    first = {"any sign": lambda trial: _first(trial.unhealthy)}
    for name in of[0].shown:
        first[name] = lambda trial, name=name: _first(trial.shown[name])
    first["no sign"] = lambda trial: np.flatnonzero(~trial.unhealthy).tolist()
    seen = ranges(of)
    table = {}
    for name, checkpoints in first.items():
        fell = [_fell(trial, t, seen[trial.task]) for trial in of for t in checkpoints(trial)]
        counted = [one for one in fell if one is not None]
        table[name] = Outcomes(sum(counted), len(counted))
    return table


def recalls(of: Sequence[RuleTrial]) -> dict[str, Outcomes]:
    """Of the members that fell, how many had shown a sign by then: any verdict's, or each by name.

    A member fell where the mean of `LOOK_BACK` checkpoints first was below `DROP` of the best such mean before.
    """
    seen = ranges(of)
    fallen = [(trial, at) for trial in of if (at := fell_at(trial, seen[trial.task])) is not None]
    shown = {"any sign": lambda trial: trial.unhealthy}
    shown |= {name: lambda trial, name=name: trial.shown[name] for name in of[0].shown}
    return {
        name: Outcomes(sum(bool(holds(trial)[: at + 1].any()) for trial, at in fallen), len(fallen))
        for name, holds in shown.items()
    }


def alarms(of: Sequence[RuleTrial]) -> dict[str, Outcomes]:
    """Of the members that learned something and never fell, how many showed a sign all the same."""
    seen = ranges(of)
    stayed = [trial for trial in of if _learned(trial, seen[trial.task]) and fell_at(trial, seen[trial.task]) is None]
    shown = {"any sign": lambda trial: trial.unhealthy}
    shown |= {name: lambda trial, name=name: trial.shown[name] for name in of[0].shown}
    return {name: Outcomes(sum(bool(holds(t).any()) for t in stayed), len(stayed)) for name, holds in shown.items()}


def _learned(trial: RuleTrial, seen: Range) -> bool:
    """Whether there was ever something to lose."""
    return bool((trial.returns - seen.low).max(initial=0.0) > LEARNED * seen.span)


def fell_at(trial: RuleTrial, seen: Range) -> int | None:
    """The number of the checkpoint; None where it never fell, or had nothing to lose."""
    if len(trial.returns) < LOOK_BACK:
        return None
    means = np.lib.stride_tricks.sliding_window_view(trial.returns - seen.low, LOOK_BACK).mean(axis=1)
    best = np.maximum.accumulate(means)
    fell = np.flatnonzero((means < DROP * best) & (best > LEARNED * seen.span))
    return int(fell[0]) + LOOK_BACK - 1 if len(fell) else None


@dataclass(frozen=True)
class Kept:
    """What a ranking of one run kept, and what its policies were worth when they were tried."""

    run: str
    rule: str
    way: str  # of `WAYS` to keep one
    told: bool  # the best could be told from all others
    tied: int  # how many could not be told from the best
    kept: float  # true discounted value of what it kept; NaN where it kept nothing
    best: float  # the largest of all that was ranked,
    mean: float  # what one of them drawn at random is worth,
    worst: float  # and the smallest
    logged: float  # what the policy that logged is worth

    @property
    def rightly(self) -> bool | None:
        """Kept something better than the logged policy, or nothing where nothing was better; None if unknown."""
        if np.isnan(self.logged) or np.isnan(self.best):
            return None
        return self.best <= self.logged if np.isnan(self.kept) else self.kept > self.logged

    @property
    def regret(self) -> float:
        """What is lost by it, as a share of the distance from the worst to the best; NaN where it kept nothing."""
        return (self.best - self.kept) / (self.best - self.worst) if self.best > self.worst else float("nan")

    @property
    def regret_of_any(self) -> float:
        """The same for one drawn at random, of a run of which it kept one."""
        return float("nan") if np.isnan(self.regret) else (self.best - self.mean) / (self.best - self.worst)


def keeping(runs: Runs, rule: str, data: Transitions | None = None) -> list[Kept]:
    """Rank the policies of an evaluated run, and hold what each way keeps against what they were really worth.

    Args:
        runs: The run, evaluated in a world.
        rule: One of `RANKINGS`.
        data: The log that judges; None is what the run held out, else what it was trained on.
    """
    if DISCOUNTED_VALUE not in runs.evaluations:
        raise UserError(f"{runs.path} was never evaluated in a world: without true values no ranking can be measured.")
    place = {int(step): number for number, step in enumerate(runs.evaluation_steps)}
    worth = runs.evaluations[DISCOUNTED_VALUE]
    found = []
    for way, ranking in rankings_of([runs], rule, data).items():
        true = {one.name: float(worth[one.member, place[one.step]]) for one in ranking.order if one.step in place}
        values = [true[name] for name in ranking.scores if name in true] or [float("nan")]
        found.append(
            Kept(
                run=str(runs.path),
                rule=rule,
                way=way,
                told=not ranking.abstained,
                tied=len(ranking.tied),
                kept=float("nan") if ranking.chosen is None else true.get(ranking.chosen.name, float("nan")),
                best=max(values),
                mean=float(np.mean(values)),
                worst=min(values),
                logged=float("nan") if ranking.logged is None else ranking.logged.estimate,
            )
        )
    return found


def _first(shown: NDArray[np.bool_]) -> list[int]:
    return [int(np.argmax(shown))] if shown.any() else []


def _fell(trial: RuleTrial, t: int, seen: Range) -> bool | None:
    """Whether returns dropped after checkpoint number t; None where nothing came after it, or was there to lose."""
    worth = trial.returns[max(0, t + 1 - LOOK_BACK) : t + 1].mean() - seen.low
    later = trial.returns[t + 1 :] - seen.low
    return bool(later.mean() < DROP * worth) if len(later) and worth > LEARNED * seen.span else None


class Range(NamedTuple):
    """The lowest return that any checkpoint had in a world, and how far above it the best one was."""

    low: float
    span: float


def ranges(of: Sequence[RuleTrial]) -> dict[str, Range]:
    """Of each world: what returns are counted from and in. They may be negative, and a share of one means nothing."""
    worlds = {task: np.concatenate([t.returns for t in of if t.task == task]) for task in sorted({t.task for t in of})}
    return {task: Range(float(returns.min()), float(np.ptp(returns))) for task, returns in worlds.items()}


def as_matrix(of: Sequence[RuleTrial], number: Callable[[RuleTrial], float]) -> Floats:
    """A number of every member as the statistics take it: (runs, tasks), NaN where a task has fewer runs."""
    tasks = sorted({trial.task for trial in of})
    columns = [[number(trial) for trial in of if trial.task == task] for task in tasks]
    matrix = np.full((max(map(len, columns)), len(tasks)), np.nan)
    for place, column in enumerate(columns):
        matrix[: len(column), place] = column
    return matrix


def to_json(trial: RuleTrial) -> dict[str, Any]:
    """The raw numbers behind every table."""
    return {
        "member": trial.member,
        "task": trial.task,
        "algorithm": trial.algorithm,
        "steps": trial.steps.tolist(),
        "returns": trial.returns.tolist(),
        "scores": {rule: for_json(of.tolist()) for rule, of in trial.scores.items()},
        "signs": {name: holds.tolist() for name, holds in trial.shown.items()},
    }
