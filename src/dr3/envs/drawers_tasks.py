"""How an episode in front of the drawers begins, and how long it lasts. Nothing here needs MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dr3.errors import UserError, did_you_mean


@dataclass(frozen=True)
class DrawerTask:
    """Take the ball out of the bottom drawer, from one kind of start. Openness is a share of the drawer's travel."""

    name: str
    steps: int  # until the time-out
    top: tuple[float, float] = (0.0, 0.0)  # the openness of the top drawer is drawn from here
    bottom: float = 0.0
    block: Literal["aside", "in front"] = "aside"


DRAWERS = {
    task.name: task
    for task in (
        DrawerTask("drawers/blocked-by-drawer", 80, top=(0.45, 0.6)),
        DrawerTask("drawers/blocked-by-object", 80, block="in front"),
        DrawerTask("drawers/closed", 50),
        DrawerTask("drawers/open", 50, bottom=1.0),  # where the task data begins; not a task of the paper
    )
}


def drawer_task(name: str) -> DrawerTask:
    """The task with a name of `DRAWERS`, or a sentence that says which there are."""
    if name not in DRAWERS:
        raise UserError(f"There is no task {name!r}; there are {', '.join(DRAWERS)}{did_you_mean(name, DRAWERS)}")
    return DRAWERS[name]
