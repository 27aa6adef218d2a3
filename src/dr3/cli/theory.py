"""`dr3 theory …`"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dr3.cli.parsing import dispatch, parse, print_json
from dr3.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from dr3.theory.checks import TheoryCheck


@dataclass(frozen=True)
class CheckOptions:
    """TheoryCheck the paper's lemmas, Theorem 3.1 and Proposition 3.2; exit 1 if anything that should hold fails."""

    json: bool = False
    """Print the numbers as JSON, and nothing else."""

    plots: Path | None = None
    """Draw the pictures of docs/theory.md into this folder."""


@dataclass(frozen=True)
class WatchOptions:
    """Train Q-learning on a gridworld and compare what the theory predicts at its checkpoints with what happens."""

    json: bool = False
    """Print the numbers as JSON, and nothing else."""

    plots: Path | None = None
    """Draw the picture of docs/results/theory.md into this folder."""

    seeds: int = 2
    """How many runs."""


USAGE = """\
usage: dr3 theory check [--json] [--plots DIR]
       dr3 theory watch [--json] [--plots DIR] [--seeds N]

example: dr3 theory check --plots theory"""


def main(arguments: list[str]) -> int:
    return dispatch("dr3 theory", {"check": _check, "watch": _watch}, USAGE, arguments)


def _check(arguments: list[str]) -> int:
    options = parse(CheckOptions, arguments, prog="dr3 theory check", description=CheckOptions.__doc__ or "")

    _check_outputs(options)
    from rich.console import Console

    from dr3.theory.checks import run_checks

    progress = Console(stderr=True)
    checks = run_checks(announce=lambda title: progress.print(f"checking {title} …"))
    if options.json:
        print_json([dataclasses.asdict(check) for check in checks])
    else:
        Console().print(_table(checks))
    if options.plots is not None:
        from dr3.reports.theory import draw

        for path in draw(checks, options.plots):
            progress.print(str(path))
    return int(any(check.passed is False for check in checks))


def _watch(arguments: list[str]) -> int:
    options = parse(WatchOptions, arguments, prog="dr3 theory watch", description=WatchOptions.__doc__ or "")

    _check_outputs(options)
    if options.seeds < 1:
        raise UserError(f"--seeds must be at least 1, not {options.seeds}.")
    from rich.console import Console

    from dr3.theory import float64
    from dr3.theory.watch import CHECKPOINTS, watch

    progress, rows = Console(stderr=True), []
    with float64():
        for seed in range(options.seeds):
            progress.print(f"watching seed {seed} …")
            rows += watch(CHECKPOINTS, seed=seed)
    if options.json:
        print_json(rows)
    else:
        Console().print(_watch_table(rows))
    if options.plots is not None:
        from dr3.reports.theory import draw_watch

        progress.print(str(draw_watch(rows, options.plots)))
    return 0


def _watch_table(rows: list[dict[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title="∇Q·∇Q' along Q-learning, and its change per step of TD",
        caption="e: root mean square TD error; noise: of minibatches, with a standard error",
        box=box.SIMPLE_HEAD,  # fits 80 columns
        padding=(0, 1, 0, 0),
    )
    for name in ("seed", "step", "∇Q·∇Q'", "e", "Re λ<0", "TD itself", "noise", "predicted"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        noise = row["sgd"]
        table.add_row(
            str(row["seed"]),
            str(row["step"]),
            f"{row['dot_product']:.3g}",
            f"{row['td_error']:.2g}",
            f"{sum(real < 0 for real, _ in row['eigenvalues'])}/{len(row['eigenvalues'])}",
            f"{row['td_itself']:+.1e}",
            f"{noise['measured']:+.1e}±{noise['standard_error']:.0e}",
            f"{noise['predicted']:+.1e}",
        )
    return table


def _check_outputs(options: CheckOptions | WatchOptions) -> None:
    """Before minutes of work, not after."""
    from dr3.files import check_folder

    if options.plots is not None:
        check_folder(options.plots)


def _table(checks: list[TheoryCheck]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="The theory, checked", title_justify="left", show_lines=True)
    for name in ("check", "claim", "measured", "verdict"):
        table.add_column(name, overflow="fold")
    for check in checks:
        table.add_row(escape(check.name), escape(check.claim), escape(check.measured), _verdict(check))
    return table


def _verdict(check: TheoryCheck) -> str:
    if check.passed is None:
        return "reported"
    if check.must_fail:
        return "[green]fails, as it must[/]" if check.passed else "[bold red]HOLDS, but must fail[/]"
    return "[green]pass[/]" if check.passed else "[bold red]FAIL[/]"
