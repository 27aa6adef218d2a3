"""Experiments from their descriptions to their verdicts: everything they share is trained once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from dr3.errors import UserError
from dr3.files import check_folder
from dr3.paper.experiments.bundle import Bundle, Online, file_of, keep
from dr3.paper.experiments.declaration import Design, Experiment, Folders, Scale
from dr3.paper.experiments.evidence import Evidence
from dr3.paper.experiments.page import write_page
from dr3.paper.experiments.pictures import Curves
from dr3.paper.experiments.result import Result, answers_of, judge
from dr3.sweeps import Engine, Failure, Job, Preparation, Task, missing_files, run_tasks

PICTURE, PAGE = "figure.png", "report.html"


@dataclasses.dataclass(frozen=True)
class Plan:
    """Some experiments at one scale, in the order in which they are to run, and where everything goes."""

    experiments: tuple[Experiment, ...]
    scale: Scale
    data: Path
    out: Path
    kept: Path | None = None  # where evidence lies, by scale; by default under `out`
    arms: tuple[str, ...] = ()  # labels; only these are trained now. Empty: all
    worlds: tuple[str, ...] = ()  # the same by the names of worlds

    @property
    def folders(self) -> Folders:
        return Folders(self.data, self.out / self.scale / "runs")

    @property
    def evidence(self) -> Path:
        return (self.kept or self.out / "evidence") / self.scale

    @cached_property
    def designs(self) -> dict[str, Design]:
        return {experiment.id: experiment.at(self.scale, self.folders) for experiment in self.experiments}

    def folder(self, experiment: Experiment) -> Path:
        return self.out / self.scale / experiment.id

    def chosen(self, design: Design) -> tuple[Task, ...]:
        """The populations that are wanted now: those of the named arms and worlds."""
        arms = [
            arm
            for arm in design.arms
            if (not self.arms or arm.label in self.arms) and (not self.worlds or arm.world in self.worlds)
        ]
        return dataclasses.replace(design, arms=tuple(arms)).tasks

    def missing(self) -> list[Job]:
        """What is to be done: tasks without evidence, all that they need, and the making of their evidence.

        In the order of the experiments, each task followed by the making of its bundle.
        """
        known = {job.name: job for design in self.designs.values() for job in design.jobs}
        keeping = {name: keeping for design in self.designs.values() for name, keeping in design.keeping.items()}
        wanted: dict[str, Job] = {}

        def want(job: Job) -> None:
            if job.name not in wanted:
                for need in job.needs:
                    want(known[need])
                wanted[job.name] = job

        for design in self.designs.values():
            for task in self.chosen(design):
                file = file_of(self.evidence, task.name)
                if Bundle.read(self.evidence, task) is not None:
                    continue
                if isinstance(task, Online):
                    bundle = task.bundle(file)
                else:
                    want(task)
                    run = str(self.folders.runs / task.name)
                    call = {"run": run, "out": str(file), "keeping": keeping[task.name].to_json()}
                    bundle = Preparation(str(file), keep, call, needs=(task.name,))
                wanted.setdefault(bundle.name, bundle)
        return list(wanted.values())


def jobs_of(designs: Sequence[Design]) -> list[Job]:
    """What all designs need together, each once, what others need first."""
    return list({job.name: job for design in designs for job in design.jobs}.values())


def reproduce(
    plan: Plan,
    *,
    engine: Engine | None = None,
    show: bool = True,
    reported: Callable[[Experiment, Result], None] = lambda experiment, result: None,
) -> list[Result]:
    """Run all that has no evidence yet, then judge every experiment; `reported` hears each verdict as it is reached.

    Each has a folder with `result.json`, `figure.png` and `report.html`. Data that is missing is named before anything
    runs. An experiment whose runs failed cannot be compared; the others can.
    """
    jobs = plan.missing()
    _check_data(jobs, plan.data)
    check_folder(plan.evidence)
    check_folder(plan.folders.runs)
    for job in jobs:
        if isinstance(job, Preparation):
            check_folder(Path(job.makes).parent)
            Path(job.makes).parent.mkdir(parents=True, exist_ok=True)
    failures = run_tasks(jobs, plan.folders.runs, engine=engine, show=show).failures if jobs else {}
    return judged(plan, failures, reported)


def judged(
    plan: Plan,
    failures: Mapping[str, Failure] | None = None,
    reported: Callable[[Experiment, Result], None] = lambda experiment, result: None,
) -> list[Result]:
    """Judge every experiment by the evidence there is, without training. `failures` say why there is no more."""
    results = []
    for experiment in plan.experiments:
        result = conclude(experiment, plan, failures or {})
        reported(experiment, result)
        results.append(result)
    return results


def seeds_of(design: Design) -> str:
    """How many seeds a line has: `3 seeds`, or `2 or 3 seeds` where worlds or data sets differ."""
    counts = sorted({len({seed for task in arm.tasks for seed in task.seeds}) for arm in design.arms})
    return f"{' or '.join(map(str, counts))} seed{'' if counts == [1] else 's'}"


def conclude(experiment: Experiment, plan: Plan, failures: Mapping[str, Failure]) -> Result:
    """The verdict on one experiment, and its folder."""
    folder, design = plan.folder(experiment), plan.designs[experiment.id]
    folder.mkdir(parents=True, exist_ok=True)
    evidence = Evidence(design.arms, plan.evidence)
    result = dataclasses.replace(
        _judged(experiment, design, plan, evidence, failures, folder),
        note=design.note,
        command=f"dr3 reproduce {experiment.id} --scale {plan.scale}",
        seconds=round(evidence.seconds, 1),
        sizes={
            "populations": len(design.tasks),
            "runs": sum(len(task.members) for task in design.tasks),
            "updates": max((task.steps for task in design.tasks), default=0),
        },
    )
    result.write(folder, experiment)
    write_page(experiment, result, folder / PAGE)
    return result


def _judged(
    experiment: Experiment,
    design: Design,
    plan: Plan,
    evidence: Evidence,
    failures: Mapping[str, Failure],
    folder: Path,
) -> Result:
    if design.blocked is not None:
        return Result(experiment.id, plan.scale, "cannot be compared", design.blocked)
    failed = [job.name for job in design.jobs if job.name in failures]
    lacking = len(evidence.missing)
    why = f"{lacking} of {len(design.tasks)} populations have no evidence yet"
    if failed:
        why = f"not all of its runs succeeded: {'; '.join(f'{name}: {failures[name]}' for name in failed)}"
    blank = Result(experiment.id, plan.scale, "cannot be compared", why, failed=bool(failed))
    answers = answers_of(experiment, evidence) if evidence.arms or not design.arms else ()
    if lacking and all(answer.verdict == "cannot be compared" for answer in answers):
        return dataclasses.replace(blank, unrun=not failed)
    # What there is, is judged: a part of a table can be read. Of pictures, curves can.
    picture = experiment.picture if not lacking or isinstance(experiment.picture, Curves) else None
    if picture is not None:
        # What stands in for what is on the page beside it: too long for a line under a picture.
        picture(evidence, folder / PICTURE, f"{plan.scale} scale, {seeds_of(design)}")
    drawn = PICTURE if picture is not None else None
    if lacking:
        return dataclasses.replace(blank, answers=answers, picture=drawn)
    verdict, why = judge(answers, plan.scale, trained=bool(design.arms))
    rows = () if experiment.numbers is None else tuple(experiment.numbers(evidence))
    return Result(experiment.id, plan.scale, verdict, why, answers, rows, picture=drawn)


def _check_data(jobs: Sequence[Job], data: Path) -> None:
    """Refuse to begin while data is missing, and name all of it."""
    missing = missing_files(jobs)
    if missing:
        raise UserError(
            f"{len(missing)} data sets are missing: {', '.join(missing)}; put them there, or name the folder that "
            f"holds them with --data (now {data})."
        )
