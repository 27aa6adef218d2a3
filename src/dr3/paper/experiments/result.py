"""What came out of an experiment, as it is written to `result.json` and read again."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dr3.errors import UserError
from dr3.files import read_json, write_json
from dr3.paper.experiments.declaration import Answer, Experiment, Row, Scale, Verdict

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
            fields["answers"] = tuple(Answer(**one) for one in record["answers"])
            fields["rows"] = tuple(Row(**one) for one in record["rows"])
            return cls(**fields)
        except TypeError as error:
            raise UserError(f"{file} is not of an experiment that this dr3 can read ({error}).") from None


def judge(answers: Sequence[Answer], scale: Scale, *, trained: bool) -> tuple[Verdict, str]:
    """The claim shows if all checks hold; what was trained for a few updates says nothing either way."""
    if trained and scale == "smoke":
        return "cannot be compared", "smoke runs only show that everything works"
    failed = [answer for answer in answers if not answer.holds]
    if not failed:
        return "shows", ""
    return "does not show", reasons(failed)


def reasons(answers: Sequence[Answer]) -> str:
    """Why checks failed, in a few words for each. A result from before reasons were kept has its rules alone."""
    return " ".join(one.reason or f"Not fulfilled: {one.rule}" for one in answers if not one.holds)
