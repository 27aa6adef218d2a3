"""Which checkpoint of a run is to be used: what `dr3 select` chose, by its file in the run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dr3.errors import UserError
from dr3.files import read_json

NAME = "selection.json"


def selected(folder: str | Path, member: int | None = None) -> tuple[int, int] | None:
    """The (member, step) that was selected in a run, or of one member; None: nothing was, or no single one."""
    record = selection_record(folder)
    if record is None:
        return None
    number, step = record.get("member"), record.get("step")
    if "member" not in record and isinstance(each := record.get("members"), list):  # a step for every member
        number = member if member is not None or len(each) != 1 else 0
        one = each[number] if number is not None and 0 <= number < len(each) else {}
        step = one.get("step") if isinstance(one, dict) else -1  # to be refused
    if number is None or step is None or member not in (None, number):
        return None
    if not (type(number) is int and type(step) is int and min(number, step) >= 0):
        raise UserError(f"{Path(folder) / NAME} is damaged: its member and step must be whole numbers; select again.")
    return number, step


def selection_record(folder: str | Path) -> dict[str, Any] | None:
    """All that `dr3 select` wrote into a run folder, or None."""
    file = Path(folder) / NAME
    return read_json(file) if file.exists() else None


def selected_at(folder: str | Path) -> int | None:
    """When that was written, in nanoseconds: whether it must be read again."""
    try:
        return (Path(folder) / NAME).stat().st_mtime_ns
    except FileNotFoundError:
        return None
