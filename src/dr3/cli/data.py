"""`dr3 data …`"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Annotated

import tyro

from dr3.cli.parsing import parse
from dr3.errors import UserError


@dataclass(frozen=True)
class Describe:
    """What a file or a world's sample holds: rows, episodes, returns, ends, rewards, and what looks wrong."""

    source: Annotated[str, tyro.conf.Positional]
    """A file (.npz), or a gridworld's name with settings."""

    json: bool = False
    """Print JSON instead of a table."""


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: dr3 data describe SOURCE [--json]\n\nexample: dr3 data describe grid16smoothobs:size=1024")
        return 0
    verb, *rest = arguments
    if verb != "describe":
        raise UserError(f"There is no command 'dr3 data {verb}'; there is dr3 data describe.")
    options = parse(Describe, rest, prog="dr3 data describe", description=Describe.__doc__ or "")

    from dr3.collect import load
    from dr3.data import describe, table

    description = describe(load(options.source))
    if options.json:
        print(json.dumps(dataclasses.asdict(description), indent=2))
    else:
        from rich.console import Console

        Console().print(table(description))
    return 0
