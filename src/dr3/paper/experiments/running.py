"""Experiments from their descriptions to their verdicts: everything they share is trained once."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from dr3.files import check_folder
from dr3.paper.experiments.declaration import Design, Experiment, Folders, Scale
from dr3.paper.experiments.evidence import Evidence
from dr3.paper.experiments.needs import check_data
from dr3.paper.experiments.page import write_page
from dr3.paper.experiments.result import Result, judge
from dr3.sweeps import Engine, Job, Outcome, Preparation, run_tasks, seconds_of

PICTURE, PAGE = "figure.png", "report.html"


@dataclasses.dataclass(frozen=True)
class Plan:
    """Some experiments at one scale, and where everything goes."""

    experiments: tuple[Experiment, ...]
    scale: Scale
    data: Path
    out: Path

    @property
    def folders(self) -> Folders:
        return Folders(self.data, self.out / self.scale / "runs")

    @cached_property
    def designs(self) -> dict[str, Design]:
        return {experiment.id: experiment.at(self.scale, self.folders) for experiment in self.experiments}

    def folder(self, experiment: Experiment) -> Path:
        return self.out / self.scale / experiment.id


def jobs_of(designs: Sequence[Design]) -> list[Job]:
    """What all designs need together, each once, what others need first."""
    everything = {job.name: job for design in designs for job in design.jobs}
    return sorted(everything.values(), key=lambda job: not isinstance(job, Preparation))


def reproduce(
    plan: Plan,
    *,
    engine: Engine | None = None,
    show: bool = True,
    told: Callable[[Experiment, Result], None] = lambda experiment, result: None,
) -> list[Result]:
    """Run all that is missing, then judge every experiment; `told` hears each verdict as it is reached.

    Each has a folder with `result.json`, `figure.png` and `report.html`. Data that is missing is named before anything
    runs. An experiment whose runs failed cannot be compared; the others can.
    """
    designs = plan.designs
    jobs = jobs_of(list(designs.values()))
    check_data(jobs, plan.data)
    for job in jobs:
        if isinstance(job, Preparation):
            check_folder(Path(job.makes).parent)
            Path(job.makes).parent.mkdir(parents=True, exist_ok=True)
    outcome = run_tasks(jobs, plan.folders.runs, engine=engine, show=show)
    results = []
    for experiment in plan.experiments:
        result = conclude(experiment, designs[experiment.id], plan, outcome)
        told(experiment, result)
        results.append(result)
    return results


def seeds_of(design: Design) -> str:
    """How many seeds a line has: `3 seeds`, or `2 or 3 seeds` where worlds or data sets differ."""
    counts = sorted({len({seed for task in arm.tasks for seed in task.seeds}) for arm in design.arms})
    return f"{' or '.join(map(str, counts))} seed{'' if counts == [1] else 's'}"


def conclude(experiment: Experiment, design: Design, plan: Plan, outcome: Outcome) -> Result:
    """The verdict on one experiment whose runs are there, and its folder."""
    began, folder = time.monotonic(), plan.folder(experiment)
    folder.mkdir(parents=True, exist_ok=True)
    result = _judged(experiment, design, plan, outcome, folder)
    spent = time.monotonic() - began + sum(seconds_of(plan.folders.runs / job.name) for job in design.jobs)
    result = dataclasses.replace(
        result,
        note=design.note,
        command=f"dr3 reproduce {experiment.id} --scale {plan.scale}",
        seconds=round(spent, 1),
        sizes={
            "populations": len(design.tasks),
            "runs": sum(len(task.members) for task in design.tasks),
            "updates": max((task.steps for task in design.tasks), default=0),
        },
    )
    result.write(folder, experiment)
    write_page(experiment, result, folder / PAGE)
    return result


def _judged(experiment: Experiment, design: Design, plan: Plan, outcome: Outcome, folder: Path) -> Result:
    if design.blocked is not None:
        return Result(experiment.id, plan.scale, "cannot be compared", design.blocked)
    failed = [job.name for job in design.jobs if job.name in outcome.failures]
    if failed:
        reasons = "; ".join(f"{name}: {outcome.failures[name]}" for name in failed)
        why = f"not all of its runs succeeded: {reasons}"
        return Result(experiment.id, plan.scale, "cannot be compared", why, failed=True)
    evidence = Evidence(design.arms, plan.folders.runs)
    answers = tuple(check(evidence) for check in experiment.checks)
    verdict, why = judge(answers, plan.scale, trained=bool(design.arms))
    rows = () if experiment.numbers is None else tuple(experiment.numbers(evidence))
    if experiment.picture is not None:
        # What stands in for what is on the page beside it: too long for a line under a picture.
        experiment.picture(evidence, folder / PICTURE, f"{plan.scale} scale, {seeds_of(design)}")
    return Result(
        experiment.id, plan.scale, verdict, why, answers, rows, picture=PICTURE if experiment.picture else None
    )
