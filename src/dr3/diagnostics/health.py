"""From measurements to verdicts in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.transitions import Transitions
from dr3.diagnostics.checks import Columns, Thresholds, not_looked_at, signs, unhealthy_at
from dr3.diagnostics.measure import Measurements, measure
from dr3.files import for_json
from dr3.notation import spell
from dr3.regularizers import DR3, Regularizer
from dr3.runs import Runs


@dataclass(frozen=True)
class Verdict:
    """One thing that is wrong with a critic now, or worth a note."""

    name: str
    since: int  # the first step from which it has held at every checkpoint
    sentence: str
    evidence: dict[str, Any]
    advice: str  # what to try next

    def __str__(self) -> str:
        return f"{self.sentence} Since step {self.since:,}."


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
        lines = [str(verdict) for verdict in self.verdicts] or [
            "Healthy: none of the signs shows, which is no promise of a good policy."
        ]
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
    """
    return judge_runs(runs, measure(runs, data, held_out=held_out), thresholds)


def judge_runs(runs: Runs, measured: Measurements, thresholds: Thresholds | None = None) -> Health:
    """The verdicts on every member of a run, from what was measured of it."""
    members = [
        (label_of(runs, number), member.regularizer, runs.status["diverged"].get(str(number)))
        for number, member in enumerate(runs.members)
    ]
    return judge(measured, members, thresholds or Thresholds())


def judge(
    measured: Measurements, members: Sequence[tuple[str, Regularizer | None, int | None]], thresholds: Thresholds
) -> Health:
    """The verdicts on each member, given as its label, its regularizer, and the step at which it was frozen, if any."""
    judged = []
    for number, (label, regularizer, frozen) in enumerate(members):
        member = judge_member(label, measured.steps, measured.of(number), thresholds, regularizer)
        if frozen is not None:
            # What was saved from then on are the weights whose loss was not finite.
            advice = _advice("divergence", measured.steps, member.unhealthy | (measured.steps >= frozen), regularizer)
            sentence = "The loss or the weights were no longer finite, and training stopped: divergence."
            member.verdicts.insert(0, Verdict("not finite", frozen, sentence, {"step": frozen}, advice))
        judged.append(member)
    return Health(judged, measured, thresholds)


def judge_member(
    label: str, steps: NDArray[np.int64], of: Columns, thresholds: Thresholds, regularizer: Regularizer | None = None
) -> MemberHealth:
    """The signs that show at the last checkpoint, and at which checkpoints any showed."""
    found = signs(steps, of, thresholds)
    judged = MemberHealth(label, [], [], unhealthy_at(found))
    last = len(steps) - 1
    for sign in found:
        if sign.holds[last]:
            absent = np.flatnonzero(~sign.holds)
            start = int(absent[-1]) + 1 if len(absent) else 0
            advice = "" if sign.note else _advice(sign.name, steps, judged.unhealthy, regularizer)
            verdict = Verdict(sign.name, int(steps[start]), sign.sentence(last), sign.evidence(last), advice)
            (judged.notes if sign.note else judged.verdicts).append(verdict)
    return judged


def label_of(runs: Runs, number: int) -> str:
    """`dqn, regularizer none, seed 0`: what tells a member of a run from the others."""
    words = [f"{key} {value}" for key, value in runs.labels[number].items()]
    return ", ".join([runs.members[number].method.name, *words])


def _advice(name: str, steps: NDArray[np.int64], unhealthy: NDArray[np.bool_], regularizer: Regularizer | None) -> str:
    healthy = steps[~unhealthy & (steps > 0)]
    earlier = f"use the checkpoint of step {healthy[-1]:,}, the last without a sign" if len(healthy) else None
    return f"Try: {'; or '.join(filter(None, (_remedy(name, regularizer), earlier)))}."


def _remedy(name: str, regularizer: Regularizer | None) -> str:
    if name == "dead features":
        return "a smaller learning rate"
    if isinstance(regularizer, DR3):
        now = regularizer.coefficient
        return f"a smaller learning rate, or another DR3 coefficient than {now:g}, {now / 3:.1g} or {now * 3:.1g} first"
    if regularizer is not None:
        return f"another coefficient than that of {spell(regularizer)}"
    return f"DR3 (--regularizer {spell(DR3())}), with a few coefficients around that one"
