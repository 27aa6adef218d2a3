"""What came out of an experiment, as it is written to `result.json` and read again."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dr3.errors import UserError
from dr3.files import for_json, read_json, write_json
from dr3.paper.experiments.declaration import Answer, Cell, Experiment, Row, Scale, Verdict
from dr3.paper.experiments.evidence import Evidence

FILE = "result.json"


@dataclass(frozen=True)
class Result:
    """A verdict and all that it rests on. `why` is empty where the claim shows."""

    id: str
    scale: Scale
    verdict: Verdict
    why: str
    answers: tuple[Answer, ...] = ()
    rows: tuple[Row, ...] = ()
    note: str = ""
    command: str = ""
    seconds: float = 0.0  # of all its runs together, shared ones included, and of judging them
    sizes: dict[str, int] = dataclasses.field(default_factory=dict)
    picture: str | None = None  # beside result.json
    failed: bool = False  # not all of its runs came to their end
    unrun: bool = False  # no evidence yet that any check can be made on

    def write(self, folder: Path, experiment: Experiment) -> None:
        """With what the paper says, so that the file stands alone."""
        about = {key: getattr(experiment, key) for key in ("label", "title", "claim", "printed")}
        write_json(folder / FILE, about | dataclasses.asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Result | None:
        """None where there is none."""
        file = folder / FILE
        if not file.exists():
            return None
        record = read_json(file, id=str, verdict=str, why=str, seconds=int | float, sizes=dict, answers=list, rows=list)
        known = {field.name for field in dataclasses.fields(cls)}
        fields: dict[str, Any] = {key: value for key, value in record.items() if key in known}
        try:
            answers = [one | {"cells": tuple(Cell(**cell) for cell in one["cells"])} for one in record["answers"]]
            fields["answers"] = tuple(Answer(**one) for one in answers)
            fields["rows"] = tuple(Row(**one) for one in record["rows"])
            return cls(**fields)
        except (TypeError, LookupError) as error:
            raise UserError(f"{file} is not of an experiment that this dr3 can read ({error}).") from None


def answers_of(experiment: Experiment, evidence: Evidence) -> tuple[Answer, ...]:
    """Every check in every group of worlds: the cells of a table."""
    parts = {group: evidence.part(group) for group in evidence.groups} or {"": evidence}
    found = [(check(part), group) for check in experiment.checks for group, part in parts.items()]
    # Numbers as the file will hold them: what is not finite is null there.
    return tuple(dataclasses.replace(one, group=group, numbers=for_json(one.numbers)) for one, group in found)


def judge(answers: Sequence[Answer], scale: Scale, *, trained: bool) -> tuple[Verdict, str]:
    """The claim shows if all checks do, in every group; what was trained for a few updates says nothing either way.

    One that does not show decides; else one whose precondition is not met; else one that cannot be compared.
    """
    if trained and scale == "smoke":
        return "cannot be compared", "smoke runs only show that everything works"
    order: tuple[Verdict, ...] = ("does not show", "precondition not met", "cannot be compared", "shows")
    verdict = next((one for one in order if any(answer.verdict == one for answer in answers)), "shows")
    return verdict, reasons(answers)


def reasons(answers: Sequence[Answer]) -> str:
    """Why checks do not show, in a few words for each."""
    failed = [one for one in answers if not one.shows]
    return " ".join(f"{f'{one.group}: ' if one.group else ''}{one.reason or one.rule}" for one in failed)
