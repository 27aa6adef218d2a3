"""How often signs were right, from bundles of evidence alone: python docs/results/signs_from_evidence.py BUNDLE…

What `dr3 select --measure` counts, of the runs of `dr3 reproduce`, whose folders nobody keeps: at each evaluation what
the doctor would have said by then. Q beyond its bounds is known at every other one and stands until the next; dot
products and srank are those of training's own metrics. Of single episodes' spread the judged evaluation closest in
time is taken. Prints JSON for calibration.py, and the counts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from dr3.diagnostics.checks import RETURN_ERROR, RETURNS, Columns, Thresholds, signs, unhealthy_at
from dr3.diagnostics.study import RuleTrial, alarms, fell_at, outcomes, ranges, recalls

FROM_METRICS = {"features/dot_product": "features/dot_product", "rank/srank": "features/srank", "q/mean": "q/data_mean"}
NOT_KEPT = ("features/co_adaptation", "q/most", "q/least", "q/lowest_return", "q/largest_return")  # words alone


def main(*files: str) -> None:
    trials = [trial for file in files for trial in trials_of(json.loads(Path(file).read_text("utf-8")), file)]
    counted = {name: {"dropped": of.dropped, "counted": of.counted} for name, of in outcomes(trials).items()}
    recall = {name: {"shown": of.dropped, "fell": of.counted} for name, of in recalls(trials).items()}
    false = {name: {"shown": of.dropped, "stayed": of.counted} for name, of in alarms(trials).items()}
    seen = ranges(trials)
    members = [
        {
            "member": trial.member,
            "fell": None if (at := fell_at(trial, seen[trial.task])) is None else int(trial.steps[at]),
            "first": {name: int(trial.steps[np.argmax(holds)]) for name, holds in trial.shown.items() if holds.any()},
        }
        for trial in trials
    ]
    print(json.dumps({"verdicts": counted, "recall": recall, "alarms": false, "members": members}, indent=2))


def trials_of(bundle: dict[str, Any], file: str) -> list[RuleTrial]:
    """Every member of a population, at its evaluations after the first, which is of initial weights."""
    made = []
    steps = np.array(bundle["evaluations_steps"], np.int64)
    for number, member in enumerate(bundle["members"]):
        returns = np.array(bundle["evaluations"]["evaluation/return"][number], np.float64)
        limit = bundle["diverged"].get(str(number), np.inf)
        tried = (steps > 0) & (steps < limit) & np.isfinite(returns)
        found = signs(steps[tried], columns_of(bundle, number, steps[tried], returns[tried]), Thresholds())
        made.append(
            RuleTrial(
                member=f"{file}, seed {member['seed']}",
                task=bundle["data"]["world"],
                algorithm=member["algorithm"],
                steps=steps[tried],
                returns=returns[tried],
                scores={},
                unhealthy=unhealthy_at(found),
                shown={sign.name: sign.holds for sign in found},
            )
        )
    return made


def columns_of(bundle: dict[str, Any], number: int, steps: np.ndarray, returns: np.ndarray) -> Columns:
    """What the doctor reads, at some steps: (T,) each."""
    measured = np.array(bundle["metrics_steps"])
    columns = {
        name: np.array(bundle["metrics"][metric][number], np.float64)[latest(measured, steps)]
        for name, metric in FROM_METRICS.items()
    }
    outside = np.append(0.0, bundle["values"]["q/outside"][number])
    columns["q/outside"] = outside[latest(np.append(0, bundle["values_steps"]), steps)]
    judged = np.array([int(step) for step in bundle["episodes"]])
    spread = np.array(
        [np.std(of[number], ddof=1) if len(of[number]) > 1 else 0.0 for of in bundle["episodes"].values()]
    )
    closest = np.abs(judged[None] - steps[:, None]).argmin(axis=1)
    unknown = np.full(len(steps), np.nan)
    error = spread[closest] / np.sqrt(bundle["task"]["episodes"])
    return columns | {RETURNS: returns, RETURN_ERROR: error} | dict.fromkeys(NOT_KEPT, unknown)


def latest(known: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The place of the last that was known at each step."""
    return np.searchsorted(known, steps, side="right") - 1


if __name__ == "__main__":
    main(*sys.argv[1:])
