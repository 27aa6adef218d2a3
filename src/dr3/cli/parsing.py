"""What the commands share when they read their arguments."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import tyro

from dr3.notation import count

T = TypeVar("T")

# A whole number that may be written 1e6.
Count = Annotated[
    int,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="N",
        instance_from_str=lambda words: count(words[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    ),
]


def parse(what: type[T] | Any, arguments: list[str], *, prog: str, description: str) -> T:
    """tyro's parser with our conventions: flags without prefixes, switches as `--flag` / `--no-flag`."""
    return tyro.cli(
        what,
        args=arguments,
        prog=prog,
        description=description,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )
