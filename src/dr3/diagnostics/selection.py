"""Choosing a checkpoint without a simulator, by a rule that is declared before anyone looks at returns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.transitions import Transitions
from dr3.diagnostics.candidates import candidates_of, policies_of
from dr3.diagnostics.checks import Thresholds, co_adaptation, signs, unhealthy_at
from dr3.diagnostics.health import label_of
from dr3.diagnostics.measure import (
    HELD_OUT_ERROR,
    ONLINE_ERROR,
    Measurements,
    judged_rewards,
    measure,
    training_data,
)
from dr3.errors import UserError, did_you_mean
from dr3.files import for_json, write_json
from dr3.ope import FQE
from dr3.ope.acting import Acting
from dr3.runs import Runs

Floats = NDArray[np.float64]

PROTOCOLS = {
    "last": "the last checkpoint",
    "step:N": "the checkpoint of step N",
    "td-error": "the smallest TD error, the critic being its own target network, on held-out episodes, "
    "or on the training data where none were held out",
    "fqe": "the largest value of its greedy policy by fitted Q evaluation on the training data",
    "coadaptation": "the last checkpoint before feature dot products passed twice their smallest value "
    "since Q was at its present size, or Proposition 3.2's ratio",
    "healthy": "the last checkpoint at which no sign of ill health shows",
    "q": "the largest mean Q",
    "srank": "the largest srank",
}
READ_HELD_OUT = ("td-error", "healthy")  # the rules for which held-out episodes change anything


@dataclass(frozen=True)
class Choice:
    """Which checkpoint of one member a rule takes."""

    member: str
    step: int | None  # None where there is none to take
    scores: Floats  # (T,) by which the rule ranks the checkpoints; NaN where one is no candidate


@dataclass(frozen=True)
class Selection:
    """A declared protocol and what it chose."""

    rule: str
    protocol: str
    steps: NDArray[np.int64]  # (T,) the checkpoints there were to choose from
    choices: list[Choice]

    @property
    def only(self) -> int | None:
        """The number of the one member that there is; None where there are several to choose from."""
        return 0 if len(self.choices) == 1 and self.choices[0].step is not None else None

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "member": self.only,
            "step": None if self.only is None else self.choices[self.only].step,
            "protocol": self.protocol,
            "simulator": False,
            "steps": self.steps.tolist(),
            "members": [
                {"member": c.member, "step": c.step, "scores": for_json(c.scores.tolist())} for c in self.choices
            ],
        }


def fqe_of_runs(runs: Runs, steps: Sequence[int], data: Transitions | None) -> Floats:
    """What fitted Q evaluation finds that every member's policy is worth at some checkpoints: (members, T)."""
    table = training_data(runs, data)
    method = runs.members[0].method
    candidates = candidates_of([runs], steps)
    policies, _ = policies_of(candidates, table)
    values = np.full((len(runs), len(steps)), np.nan)
    if policies:
        fit = FQE()(Acting.of(policies, table), judged_rewards(method, table), method.discount)
        found = dict(zip(policies, fit.values, strict=True))
        for one in candidates:
            values[one.member, list(steps).index(one.step)] = found.get(one.name, np.nan)
    return values


def select(
    runs: Runs,
    rule: str,
    data: Transitions | None = None,
    *,
    held_out: Transitions | None = None,
    evaluating: Callable[..., Floats] = fqe_of_runs,
) -> Selection:
    """Choose a checkpoint of every member by a rule of `PROTOCOLS`, and record it in the run as `selection.json`.

    The initial weights are no candidate, nor is a critic that is not finite. Nothing here acts in a world or reads an
    evaluation. `evaluating` is called as `fqe_of_runs` is, and may recall what was found before.

    Args:
        runs: The run.
        rule: One of `PROTOCOLS`, or step:N.
        data: What it was trained on; None loads it from where it was.
        held_out: Data that it was not trained on, for the TD error there.
        evaluating: Values policies, as `fqe_of_runs` does, and may recall what was found before.
    """
    steps = steps_for(runs, [rule])
    measured = None
    if rule in _MEASURED:
        measured = measure(runs, data, held_out=held_out, steps=steps, gradients=rule == "healthy")
    chosen = []
    for number, scores in enumerate(scores_of(runs, rule, steps, data, measured, evaluating)):
        place = choose(rule, scores)
        chosen.append(Choice(label_of(runs, number), None if place is None else steps[place], scores))
    selection = Selection(rule, protocol_of(rule), np.array(steps), chosen)
    write_json(runs.path / "selection.json", selection.to_json())
    return selection


def steps_for(runs: Runs, rules: Sequence[str]) -> list[int]:
    """The checkpoints that rules choose from; refused here is what would else be noticed after long measurements."""
    for rule in rules:
        protocol_of(rule)
    steps = [step for step in runs.checkpoints if step > 0]
    if not steps:
        raise UserError(f"{runs.path} has no checkpoint after the initial one to choose.")
    for rule in rules:
        if (wanted := _named_step(rule)) is not None and wanted not in steps:
            raise UserError(f"{runs.path} has no checkpoint of step {wanted}; it has {steps}.")
    return steps


def scores_of(
    runs: Runs,
    rule: str,
    steps: Sequence[int],
    data: Transitions | None,
    measured: Measurements | None,
    evaluating: Callable[..., Floats],
) -> Floats:
    """What a rule thinks of each checkpoint: (members, T), NaN where one is no candidate.

    `measured` are these steps; some rules need it. Without a spectrum in it `healthy` knows nothing of that.
    """
    broken = frozen(runs, steps)
    if measured is not None:
        broken |= ~np.isfinite(measured.columns["q/mean"])
    scores = evaluating(runs, steps, data) if rule == "fqe" else _scores(runs, rule, steps, measured)
    return np.where(broken, np.nan, scores)


def choose(rule: str, scores: Floats) -> int | None:
    """The index of the largest score, the latest of equals; None where no checkpoint qualifies.

    Most rules can take any checkpoint with a finite score; those that name the ones they may take score them above 0.
    """
    able = np.isfinite(scores) & ((scores > 0) | (rule in HAVE_SCORES))
    return int(np.flatnonzero(able & (scores == scores[able].max()))[-1]) if able.any() else None


def protocol_of(rule: str) -> str:
    """The rule in words, or one sentence that lists the rules there are."""
    name, _, number = rule.partition(":") if isinstance(rule, str) else ("", "", "")
    if name == "step" and re.fullmatch("[0-9]{1,12}", number):
        return PROTOCOLS["step:N"].replace("N", f"{int(number):,}")
    if rule not in PROTOCOLS or rule == "step:N":
        raise UserError(
            f"There is no rule {rule!r}; there are {', '.join(PROTOCOLS)}{did_you_mean(str(rule), PROTOCOLS)}"
        )
    return PROTOCOLS[rule]


def _named_step(rule: str) -> int | None:
    return int(rule.removeprefix("step:")) if rule.startswith("step:") else None


def frozen(runs: Runs, steps: Sequence[int]) -> NDArray[np.bool_]:
    """Whether a member had diverged: (members, T). From then on weights were saved whose loss was not finite."""
    diverged = runs.status["diverged"]
    since = np.array([diverged.get(str(number), np.inf) for number in range(len(runs))])
    return np.array(steps) >= since[:, None]


def _scores(runs: Runs, rule: str, steps: Sequence[int], measured: Measurements | None) -> Floats:
    if rule == "last":
        return np.tile(np.array(steps, np.float64), (len(runs), 1))
    if (wanted := _named_step(rule)) is not None:
        return np.tile((np.array(steps) == wanted).astype(np.float64), (len(runs), 1))
    assert measured is not None
    return _MEASURED[rule](measured)


def _td_error(measured: Measurements) -> Floats:
    return -measured.columns.get(HELD_OUT_ERROR, measured.columns[ONLINE_ERROR])


def _before_co_adaptation(measured: Measurements) -> Floats:
    """The step as long as no sign has shown; below all of these, and falling with the growth, from then on."""
    limit = Thresholds(growth=2.0)
    found = [co_adaptation(measured.steps, measured.of(n), limit) for n in range(_members(measured))]
    return np.stack([_until(measured.steps, sign.holds) for sign in found])


def _healthy(measured: Measurements) -> Floats:
    rows = []
    for number in range(_members(measured)):
        found = signs(measured.steps, measured.of(number), Thresholds())
        # Unlike the turning point of the dot products, a sign can pass: the latest checkpoint without any is taken.
        rows.append(np.where(unhealthy_at(found), -measured.steps, measured.steps))
    return np.stack(rows).astype(np.float64)


def _until(steps: NDArray[np.int64], holds: NDArray[np.bool_]) -> Floats:
    shown = np.maximum.accumulate(holds)
    return np.where(shown, -steps, steps).astype(np.float64)


def _members(measured: Measurements) -> int:
    return len(measured.columns["features/dot_product"])


_MEASURED: dict[str, Callable[[Measurements], Floats]] = {
    "td-error": _td_error,
    "coadaptation": _before_co_adaptation,
    "healthy": _healthy,
    "q": lambda measured: measured.columns["q/mean"],
    "srank": lambda measured: measured.columns["rank/srank"],
}

HAVE_SCORES = ("td-error", "fqe", "q", "srank")  # any checkpoint may be taken, the one with the largest
