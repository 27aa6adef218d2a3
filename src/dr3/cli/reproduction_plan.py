"""`dr3 reproduce --dry-run`: what would be trained, with what, on which data, and how long that takes."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dr3.paper.experiments import Plan
    from dr3.sweeps import Task


def print_plan(plan: Plan) -> None:
    from rich.console import Console

    from dr3.sweeps import Preparation, Task, data_of, missing_files

    console = Console()
    jobs = plan.missing()
    tasks = [job for job in jobs if isinstance(job, Task)]
    _print_grid(plan, console)
    _print_methods(tasks, console)
    console.print("\n[bold]Data[/bold]")
    console.print(
        f"  {len(tasks)} populations have no evidence yet in {plan.evidence}.", soft_wrap=True, highlight=False
    )
    for job in jobs:
        if isinstance(job, Preparation) and Path(job.makes).parent != plan.evidence:
            state = "there" if job.finished(plan.folders.runs / job.name) else "to be made"
            console.print(f"  {job.makes}: {state}", soft_wrap=True, highlight=False)
    missing = missing_files(jobs)
    for word in missing:
        console.print(f"  {word}: missing", soft_wrap=True, highlight=False)
    console.print(
        f"  {len(data_of(jobs))} data sets in all under {plan.data}, {len(missing)} missing.", highlight=False
    )
    _print_costs(jobs, console)


def _print_grid(plan: Plan, console: Any) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=f"{plan.scale} scale, in {plan.out / plan.scale}", title_justify="left")
    for column in ("id", "methods", "worlds", "data", "seeds", "updates", "runs"):
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    for id, design in plan.designs.items():
        if design.blocked is not None:
            table.add_row(id, f"cannot be compared: {design.blocked}")
            continue
        if not design.arms:
            table.add_row(id, "nothing to train")
            continue
        per_arm = sorted({sum(len(task.seeds) for task in arm.tasks) for arm in design.arms})
        table.add_row(
            id,
            ", ".join(dict.fromkeys(arm.label for arm in design.arms)),
            ", ".join(dict.fromkeys(arm.world for arm in design.arms)),
            ", ".join(dict.fromkeys(arm.group for arm in design.arms if arm.group)),
            ", ".join(map(str, per_arm)),
            ", ".join(f"{steps:,}" for steps in sorted({task.steps for task in design.tasks})),
            str(sum(len(task.members) for task in design.tasks)),
        )
    console.print(table, highlight=False)


def _print_methods(tasks: list[Task], console: Any) -> None:
    """The hyperparameters of every distinct method, and the regularizers it is trained with."""
    from dr3.notation import spell

    regularizers: dict[Any, set[str]] = {}
    for task in tasks:
        words = {"none" if one is None else spell(one) for one in task.regularizers}
        regularizers.setdefault(task.method, set()).update(words)
    console.print("[bold]Methods[/bold]")
    for method, words in regularizers.items():
        settings = ", ".join(f"{field.name} {getattr(method, field.name)}" for field in dataclasses.fields(method))
        line = f"  {method.name}: {settings}; regularizers: {', '.join(sorted(words))}"
        console.print(line, soft_wrap=True, highlight=False)


def _print_costs(jobs: list[Any], console: Any) -> None:
    from dr3.notation import spell
    from dr3.paper.experiments.estimate import estimate

    def reported(done: int, of: int) -> None:
        print(f"measured {done} of {of} kinds of updates", file=sys.stderr, flush=True)

    costs = estimate(jobs, reported)
    console.print("\n[bold]Compute[/bold] (updates only, at the speed measured here; a GPU is another matter)")
    for cost in costs:
        name = cost.kind.method.name + ("" if cost.kind.regularizer is None else f" + {spell(cost.kind.regularizer)}")
        shape = "x".join(map(str, cost.kind.spec.observation_shape))
        console.print(
            f"  {name} on {shape}: {cost.updates:,} updates at {cost.per_second:,.1f} a second: {cost.hours:,.1f} h",
            soft_wrap=True,
            highlight=False,
        )
    total = sum(cost.hours for cost in costs)
    console.print(
        f"  {total:,.1f} hours of one core like this one's, {total / 2:,.1f} on two; trying policies and making data "
        "add to that.",
        highlight=False,
    )
