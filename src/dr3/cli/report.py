"""`dr3 report RUN …`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dr3.cli.parsing import parse
from dr3.errors import UserError


@dataclass(frozen=True)
class Report:
    """One HTML file about one or several runs: verdicts, curves, intervals, configuration. It opens from disk.

    examples:

    dr3 report runs/first

    dr3 report runs/cql runs/cql-dr3 --out cql.html
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """The run folders."""

    out: Path | None = None
    """The file; by default report.html in the folder of the run. Several runs need it."""

    data: str | None = None
    """What the runs were trained on, where it is not where it was."""

    gradients: bool = True
    """Measure the stability spectrum over all parameters, which takes longest, and not over the last layer alone."""


def main(arguments: list[str]) -> int:
    options = parse(Report, arguments, prog="dr3 report", description=Report.__doc__ or "")
    if not options.runs:
        raise UserError("dr3 report needs at least one run folder: dr3 report runs/first.")

    import sys

    from dr3.data import load
    from dr3.files import check_file
    from dr3.reports.report import write_report
    from dr3.runs import Runs

    if options.out is not None:
        check_file(options.out)
    runs = [Runs(path) for path in options.runs]
    data = None if options.data is None else load(options.data, discount=runs[0].config.data.discount)

    def progress(title: str, done: int, of: int) -> None:
        end = "\r" if sys.stderr.isatty() and done < of else "\n"
        print(f"{title}: measured {done} of {of} checkpoints", end=end, file=sys.stderr, flush=True)

    written = write_report(runs, options.out, data=data, gradients=options.gradients, progress=progress)
    print(f"The report is {written}")
    return 0
