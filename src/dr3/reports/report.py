"""`dr3 report`: from run folders to one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.files import write_text
from dr3.reports.checkup import Checkup
from dr3.reports.content import Reading, gather
from dr3.reports.page import render
from dr3.runs import Runs


def write_report(
    runs: Runs | Sequence[Runs],
    path: str | Path | None = None,
    *,
    data: Transitions | None = None,
    gradients: bool = True,
    progress: Callable[[str, int, int], None] = lambda title, done, of: None,
) -> Path:
    """Write the report of one or several runs and return its path: `report.html` in the run's folder by default.

    `data` and `gradients` as in `dr3.diagnostics.measure`. Where the data of a run cannot be had, its report gives the
    reason in place of the verdicts, and everything else. `progress` is called after each checkpoint.

    Args:
        runs: One run or several.
        path: The file; None is report.html in the folder of the run.
        data: What the runs were trained on; None loads it from where it was.
        gradients: Measure the spectrum over all parameters, and not over the last layer alone.
        progress: Called with a title, how many checkpoints are measured and how many there are.
    """
    several = [runs] if isinstance(runs, Runs) else list({one.path.resolve(): one for one in runs}.values())
    if not several:
        raise UserError("A report needs at least one run.")
    if path is None and len(several) > 1:
        raise UserError("A report of several runs belongs to none of their folders: say where it goes, --out FILE.")
    path = several[0].path / "report.html" if path is None else Path(path)
    page = render(gather([_read(one, data, gradients, progress) for one in several]))
    try:
        write_text(path, page)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from None
    return path


def _read(runs: Runs, data: Transitions | None, gradients: bool, progress: Callable[[str, int, int], None]) -> Reading:
    checkup = Checkup(data, gradients=gradients)
    steps = checkup.missing(runs)
    if not steps:
        return Reading(runs, None, f"{runs.path} has no checkpoint yet.")
    for number, step in enumerate(steps, start=1):
        try:
            checkup.measure(runs, step)
        except UserError as reason:
            return Reading(runs, None, str(reason))
        progress(str(runs.path), number, len(steps))
    return Reading(runs, checkup.health(runs))
