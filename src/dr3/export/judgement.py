"""What is known of how good an exported policy is: estimates of its value, and the doctor's word on its critic."""

from __future__ import annotations

from typing import Any

from dr3.data import Transitions
from dr3.diagnostics.health import judge_runs
from dr3.diagnostics.measure import measure
from dr3.runs import Runs
from dr3.runs.selected import selection_record


def estimates_of(runs: Runs, member: int, step: int) -> dict[str, Any] | None:
    """What `dr3 select` found that this policy scores, with its interval; None where it was not ranked.

    Args:
        runs: The run.
        member: Whose policy it is.
        step: Of which checkpoint.
    """
    record = selection_record(runs.path) or {}
    ranking = record.get("ranking")
    names = [f"{folder}@{step}:{member}" for folder in (record.get("run"), runs.path)]
    for one in ranking if isinstance(ranking, list) else []:
        if one.get("policy") in names:
            about = {name: record.get(name) for name in ("rule", "protocol", "judged_by", "abstained", "logged")}
            return {**about, "score": one.get("score"), "why": one.get("why")}
    return None


def doctors_word(runs: Runs, member: int, step: int, data: Transitions) -> dict[str, Any]:
    """The verdicts on a member at a checkpoint, from what was measured up to there.

    Args:
        runs: The run.
        member: Whose critic it is.
        step: Of which checkpoint.
        data: What the run was trained on.
    """
    measured = measure(runs, data, steps=[at for at in runs.checkpoints if at <= step], gradients=False)
    health = judge_runs(runs, measured)
    found = health.members[member]
    verdicts = [str(one) for one in found.verdicts if one.since <= step]  # it may have diverged later
    return {
        "healthy": not verdicts,
        "verdicts": verdicts,
        "notes": [str(one) for one in found.notes],
        "not_looked_at": health.not_looked_at,
        "rows": measured.rows,
    }
