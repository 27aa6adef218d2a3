"""`dr3 run …`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dr3.cli.parsing import dispatch, parse


@dataclass(frozen=True)
class Digest:
    """One SHA-256 over a run's final weights, metrics and evaluations: equal digests, equal runs."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run folder."""


USAGE = "usage: dr3 run digest RUN\n\nexample: dr3 run digest runs/first"


def main(arguments: list[str]) -> int:
    return dispatch("dr3 run", {"digest": _digest}, USAGE, arguments)


def _digest(arguments: list[str]) -> int:
    options = parse(Digest, arguments, prog="dr3 run digest", description=Digest.__doc__ or "")

    from dr3.training import Runs, digest

    print(digest(Runs(options.run)))
    return 0
