"""What a cure's folder remembers of its plan, so that the same command goes on and a longer one lengthens."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dr3.cures.plan import CurePlan
from dr3.errors import UserError
from dr3.files import read_json, write_json
from dr3.hyperparameters import to_json

NAME = "plan.json"


@dataclass(frozen=True)
class PlanRecord:
    """How long the members of a folder are to be, and how long those were that were planned first."""

    data: str
    method: dict[str, Any]  # and its settings
    env: str | None
    steps: int
    first_steps: int  # evaluations come as often as they would for so many updates, whatever is added later
    minutes: float | None  # the budget that the steps came from

    @classmethod
    def of(cls, plan: CurePlan, minutes: float | None) -> PlanRecord:
        """The record of a plan.

        Args:
            plan: What will be trained.
            minutes: The budget that its steps came from; None where they were asked for.
        """
        return cls(plan.data, to_json(plan.base.method) or {}, plan.env, plan.steps, plan.planned_first, minutes)

    @classmethod
    def read(cls, out: Path) -> PlanRecord | None:
        """That of a folder; None where no cure was begun.

        Args:
            out: The folder of all runs.
        """
        if not (out / NAME).exists():
            return None
        record = read_json(out / NAME, data=str, method=dict, steps=int, first_steps=int)
        fields: dict[str, Any] = {field.name: record.get(field.name) for field in dataclasses.fields(cls)}
        return cls(**fields)

    def write(self, out: Path) -> None:
        """Keep it.

        Args:
            out: The folder of all runs.
        """
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / NAME, dataclasses.asdict(self))


def going_on(plan: CurePlan, before: PlanRecord | None, out: Path, *, minutes: float | None) -> CurePlan:
    """The plan with the evaluations of the one before, and never shorter: runs are lengthened, not cut.

    Args:
        plan: What is asked for now.
        before: What was asked for before in the same folder.
        out: The folder of all runs.
        minutes: The budget that the plan's steps came from; None where they were asked for.

    Raises:
        UserError: The folder is that of another cure, or its runs are longer than what is asked for.
    """
    if before is None:
        return plan
    now = PlanRecord.of(plan, minutes)
    for what in ("data", "method", "env"):
        if getattr(now, what) != getattr(before, what):
            raise UserError(f"{out} holds a cure with another {what}: choose another folder with --out.")
    if minutes is None and plan.steps < before.steps:
        raise UserError(
            f"{out} holds a cure of {before.steps:,} updates, which can be lengthened, not cut to {plan.steps:,}: "
            "choose another folder with --out."
        )
    return dataclasses.replace(plan, steps=max(plan.steps, before.steps), first_steps=before.first_steps)
