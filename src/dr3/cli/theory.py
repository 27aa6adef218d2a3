"""`dr3 theory …`"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dr3.cli.parsing import parse
from dr3.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from dr3.theory.checks import Check


@dataclass(frozen=True)
class CheckOptions:
    """Check the paper's lemmas, Theorem 3.1 and Proposition 3.2; exit 1 if anything that should hold fails."""

    json: Path | None = None
    """Write every number measured to this file."""

    plots: Path | None = None
    """Draw the pictures of docs/theory.md into this folder."""


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: dr3 theory check [--json PATH] [--plots DIR]\n\nexample: dr3 theory check --plots theory")
        return 0
    verb, *rest = arguments
    if verb != "check":
        raise UserError(f"There is no command 'dr3 theory {verb}'; there is dr3 theory check.")
    options = parse(CheckOptions, rest, prog="dr3 theory check", description=CheckOptions.__doc__ or "")
    if options.json is not None and not options.json.resolve().parent.is_dir():
        raise UserError(f"--json: the folder of {options.json} does not exist; make it first.")

    from rich.console import Console

    from dr3.theory.checks import run_checks

    console = Console(stderr=True)
    checks = run_checks(announce=lambda title: console.print(f"checking {title} …"))
    Console().print(_table(checks))
    if options.json is not None:
        options.json.write_text(json.dumps([_plain(dataclasses.asdict(check)) for check in checks], indent=1) + "\n")
    if options.plots is not None:
        from dr3.theory.checks.pictures import draw

        for path in draw(checks, options.plots):
            print(path, file=sys.stderr)
    return int(any(check.passed is False for check in checks))


def _table(checks: list[Check]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="The theory, checked", title_justify="left", show_lines=True)
    for name in ("check", "claim", "measured", "verdict"):
        table.add_column(name, overflow="fold")
    for check in checks:
        table.add_row(escape(check.name), escape(check.claim), escape(check.measured), _verdict(check))
    return table


def _verdict(check: Check) -> str:
    if check.passed is None:
        return "reported"
    if check.must_fail:
        return "[green]fails, as it must[/]" if check.passed else "[bold red]HOLDS, but must fail[/]"
    return "[green]pass[/]" if check.passed else "[bold red]FAIL[/]"


def _plain(value: Any) -> Any:
    """JSON has no infinity: a diverged norm is null."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
