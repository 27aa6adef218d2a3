"""From measurements to verdicts in plain words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dr3.data.transitions import Transitions
from dr3.diagnostics.checks import (
    ABOUT_BOOTSTRAPPING,
    RETURN_ERROR,
    RETURNS,
    Columns,
    Thresholds,
    not_looked_at,
    signs,
    unhealthy_at,
)
from dr3.diagnostics.measure import Measurements, measure
from dr3.files import for_json
from dr3.notation import spell
from dr3.regularizers import DR3, Regularizer
from dr3.runs import Runs
from dr3.runs.outcomes import RETURN

HEALTHY = "Healthy: no fall in returns and no impossible Q-values show, which is no promise of a good policy."


@dataclass(frozen=True)
class Verdict:
    """One thing that is wrong with a critic now, or worth a note."""

    name: str
    since: int  # the first step from which it has held at every checkpoint
    sentence: str
    evidence: dict[str, Any]
    advice: str  # what to try next
    shown: str = ""  # how often the sign was right before, where that was measured

    def __str__(self) -> str:
        return " ".join(filter(None, [f"{self.sentence} Since step {self.since:,}.", self.shown]))


@dataclass(frozen=True)
class MemberHealth:
    """The verdicts on one member at its last checkpoint, the gravest first, and what is only noted."""

    label: str
    verdicts: list[Verdict]
    notes: list[Verdict]
    unhealthy: NDArray[np.bool_] = field(repr=False)  # (T,) whether any sign showed, at each checkpoint; notes are none

    @property
    def healthy(self) -> bool:
        return not self.verdicts

    def __str__(self) -> str:
        lines = [str(verdict) for verdict in self.verdicts] or [HEALTHY]
        advice = {verdict.advice: None for verdict in self.verdicts}  # each once, in order
        notes = [f"Note, no sign of ill health by itself: {note}" for note in self.notes]
        return "\n".join(f"  {line}" for line in (*lines, *advice, *notes))


@dataclass(frozen=True)
class Health:
    """The health of every member of a run."""

    members: list[MemberHealth]
    measurements: Measurements = field(repr=False)
    thresholds: Thresholds

    @property
    def healthy(self) -> bool:
        return all(member.healthy for member in self.members)

    @property
    def not_looked_at(self) -> list[str]:
        """The signs that could not be looked for: there were no Q-values, or no held-out episodes."""
        return not_looked_at(self.measurements.columns)

    def __str__(self) -> str:
        lines = [f"{member.label}\n{member}" for member in self.members]
        if self.not_looked_at:
            lines.append(f"Not looked at: {', '.join(self.not_looked_at)}.")
        if len(self.measurements.steps) == 1:
            lines.append("Signs of growth need several checkpoints; here is one.")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Everything but the curves, as JSON can hold it."""
        return {
            "healthy": self.healthy,
            "step": int(self.measurements.steps[-1]),
            "probe_rows": self.measurements.rows,
            "not_looked_at": self.not_looked_at,
            "members": [
                {
                    "member": one.label,
                    "healthy": one.healthy,
                    "verdicts": [for_json(asdict(verdict)) for verdict in one.verdicts],
                    "notes": [for_json(asdict(note)) for note in one.notes],
                }
                for one in self.members
            ],
            "thresholds": asdict(self.thresholds),
        }


def health(
    runs: Runs,
    data: Transitions | None = None,
    *,
    held_out: Transitions | None = None,
    thresholds: Thresholds | None = None,
) -> Health:
    """Measure every checkpoint of every member and say what is wrong, since when, and what to try.

    A verdict is about the last checkpoint. For `data` and `held_out` see `measure`; without held-out episodes nothing
    is said about the held-out error.

    Args:
        runs: The run.
        data: What it was trained on; None loads it from where it was.
        held_out: Data that it was not trained on, for the TD error there.
        thresholds: From where on a number counts as a finding.
    """
    return judge_runs(runs, measure(runs, data, held_out=held_out), thresholds)


def judge_runs(runs: Runs, measured: Measurements, thresholds: Thresholds | None = None) -> Health:
    """The verdicts on every member of a run, from what was measured of it."""
    members = [
        Judged(
            label_of(runs, number),
            member.regularizer,
            runs.status["diverged"].get(str(number)),
            bootstraps(member.method),
        )
        for number, member in enumerate(runs.members)
    ]
    return judge(_with_returns(runs, measured), members, thresholds or Thresholds())


def _with_returns(runs: Runs, measured: Measurements) -> Measurements:
    """With what the run itself knows: what its policies earned when it tried them, and the size of its steps."""
    known = {"step_size": np.array([[getattr(m.method, "learning_rate", np.nan)] for m in runs.members])}
    known["step_size"] = np.broadcast_to(known["step_size"], (len(runs), len(measured.steps)))
    if RETURN in runs.evaluations:
        place = {int(step): number for number, step in enumerate(runs.evaluation_steps)}
        tried = runs.evaluations[RETURN]
        errors = np.array([[_standard_error(episodes) for episodes in member] for member in runs.returns])
        unknown = np.full(len(runs), np.nan)
        for name, known_of in ((RETURNS, tried), (RETURN_ERROR, errors)):
            columns = [known_of[:, place[int(s)]] if int(s) in place else unknown for s in measured.steps]
            known[name] = np.stack(columns, axis=1)
    return replace(measured, columns=measured.columns | known)


def _standard_error(episodes: Sequence[float]) -> float:
    """Of their mean; NaN where one episode, or an exact value, says nothing of it."""
    return float(np.std(episodes, ddof=1) / np.sqrt(len(episodes))) if len(episodes) > 1 else float("nan")


def bootstraps(method: Any) -> bool:
    """Whether what a method learns to do rests on bootstrapped values: regression and cloning do not."""
    return method.synchronise_every is not None and not getattr(method, "CLONES", False)


class Judged(NamedTuple):
    """What the verdicts on a member depend on beside its measurements."""

    label: str
    regularizer: Regularizer | None = None
    frozen: int | None = None  # the step at which training had to stop, if any
    bootstraps: bool = True


def judge(measured: Measurements, members: Sequence[Judged], thresholds: Thresholds) -> Health:
    """The verdicts on each member."""
    judged = []
    for number, one in enumerate(members):
        label, regularizer, frozen, _ = one
        member = judge_member(label, measured.steps, measured.of(number), thresholds, regularizer, one.bootstraps)
        if frozen is not None:
            # What was saved from then on are the weights whose loss was not finite.
            ill = member.unhealthy | (measured.steps >= frozen)
            advice = _advice("divergence", measured.steps, ill, regularizer, one.bootstraps)
            sentence = "The loss or the weights were no longer finite, and training stopped: divergence."
            member.verdicts.insert(0, Verdict("not finite", frozen, sentence, {"step": frozen}, advice))
        judged.append(member)
    return Health(judged, measured, thresholds)


def judge_member(
    label: str,
    steps: NDArray[np.int64],
    of: Columns,
    thresholds: Thresholds,
    regularizer: Regularizer | None = None,
    bootstraps: bool = True,
) -> MemberHealth:
    """The signs that show at the last checkpoint, and at which checkpoints any showed."""
    found = [sign for sign in signs(steps, of, thresholds) if bootstraps or sign.name not in ABOUT_BOOTSTRAPPING]
    judged = MemberHealth(label, [], [], unhealthy_at(found))
    last = len(steps) - 1
    for sign in found:
        if sign.holds[last]:
            absent = np.flatnonzero(~sign.holds)
            start = int(absent[-1]) + 1 if len(absent) else 0
            advice = "" if sign.note else _advice(sign.name, steps, judged.unhealthy, regularizer, bootstraps)
            words = sign.sentence(last), sign.evidence(last)
            verdict = Verdict(
                sign.name, int(steps[start]), *words, advice, "" if sign.note else precision_of(sign.name)
            )
            (judged.notes if sign.note else judged.verdicts).append(verdict)
    return judged


def label_of(runs: Runs, number: int) -> str:
    """`dqn, regularizer none, seed 0`: what tells a member of a run from the others."""
    words = [f"{key} {value}" for key, value in runs.labels[number].items()]
    return ", ".join([runs.members[number].method.name, *words])


@cache
def _calibration() -> dict[str, Any]:
    text = resources.files("dr3.diagnostics").joinpath("calibration.json").read_text("utf-8")
    return json.loads(text)


def precision_of(name: str) -> str:
    """How often a sign was followed by a fall in returns in the runs that it was measured on."""
    record = _calibration()
    if (found := record["signs"].get(name)) is None:
        return ""
    base, recall = record["no sign"], record.get("recall", {}).get(name)
    text = (
        f"Of {found['of']} critics with this sign in {record['runs']}, {found['fell']} then lost a tenth of their "
        f"return or more; of checkpoints without one {base['fell'] / base['of']:.0%}."
    )
    if recall is not None:
        text += f" Of {recall['fell']} that fell, {recall['shown']} had shown it by then."
    if (false := record.get("alarms", {}).get(name)) is not None:
        text += f" Of {false['stayed']} that never fell, {false['shown']} showed it at some time."
    return f"({text})"


def _advice(
    name: str,
    steps: NDArray[np.int64],
    unhealthy: NDArray[np.bool_],
    regularizer: Regularizer | None,
    bootstraps: bool = True,
) -> str:
    healthy = steps[~unhealthy & (steps > 0)]
    earlier = f"use the checkpoint of step {healthy[-1]:,}, the last without a sign" if len(healthy) else None
    return f"Try: {'; or '.join(filter(None, (_remedy(name, regularizer, bootstraps), earlier)))}."


def _remedy(name: str, regularizer: Regularizer | None, bootstraps: bool) -> str:
    if not bootstraps:
        return "a smaller learning rate"
    if isinstance(regularizer, DR3):
        now = regularizer.coefficient
        return f"a smaller learning rate, or another DR3 coefficient than {now:g}, {now / 3:.1g} or {now * 3:.1g} first"
    if regularizer is not None:
        return f"another coefficient than that of {spell(regularizer)}"
    return f"DR3 (--regularizer {spell(DR3())}), with a few coefficients around that one"
