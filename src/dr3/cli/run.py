"""`dr3 run …`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dr3.cli.parsing import parse
from dr3.errors import UserError


@dataclass(frozen=True)
class Digest:
    """One SHA-256 over a run's final weights, metrics and evaluations: equal digests, equal runs."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run folder."""


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: dr3 run digest RUN\n\nexample: dr3 run digest runs/first")
        return 0
    verb, *rest = arguments
    if verb != "digest":
        raise UserError(f"There is no command 'dr3 run {verb}'; there is dr3 run digest.")
    options = parse(Digest, rest, prog="dr3 run digest", description=Digest.__doc__ or "")

    from dr3.training import Runs, digest

    print(digest(Runs(options.run)))
    return 0
