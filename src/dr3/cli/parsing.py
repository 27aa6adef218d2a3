"""What the commands share when they read their arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Annotated, Any, TypeVar

import tyro

from dr3.errors import UserError, did_you_mean
from dr3.notation import count

T = TypeVar("T")


def _whole_number(metavar: str) -> tyro.constructors.PrimitiveConstructorSpec[int]:
    """A whole number that may be written 1e6."""
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: count(words[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    )


Count = Annotated[int, _whole_number("N")]

_REGISTRY = tyro.constructors.ConstructorRegistry()


@_REGISTRY.primitive_rule
def _every_whole_number(
    asked: tyro.constructors.PrimitiveTypeInfo,
) -> tyro.constructors.PrimitiveConstructorSpec[int] | None:
    return _whole_number("INT") if asked.type is int else None


def parse(what: type[T] | Any, arguments: list[str], *, prog: str, description: str) -> T:
    """tyro's parser with our conventions: flags without prefixes, switches as `--flag` / `--no-flag`."""
    return tyro.cli(
        what,
        args=arguments,
        prog=prog,
        description=description,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
        registry=_REGISTRY,
    )


def with_examples(about: str, examples: str, command: str) -> str:
    """What a command does, and those of the examples that are its own."""
    own = [line for line in examples.splitlines() if line.startswith(f"{command} ")]
    return "\n\n".join([about, "examples:", *own])


def value_of(flag: str, arguments: list[str]) -> str | None:
    """What follows a flag, where that must be known before it is known what to parse; the last one counts."""
    found = None
    for word, following in pairwise([*arguments, ""]):
        if word == flag:
            found = following
        elif word.startswith(f"{flag}="):
            found = word.removeprefix(f"{flag}=")
    return found


def dispatch(command: str, verbs: Mapping[str, Callable[[list[str]], int]], usage: str, arguments: list[str]) -> int:
    """`dr3 COMMAND VERB …`: hand what follows the verb to its function; the exit code. Without a verb, the usage."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage)
        return 0
    verb, *rest = arguments
    if verb not in verbs:
        known = ", ".join(f"{command} {name}" for name in verbs)
        there = "there is" if len(verbs) == 1 else "there are"
        raise UserError(f"There is no command '{command} {verb}'; {there} {known}{did_you_mean(verb, verbs)}")
    return verbs[verb](rest)


def print_json(value: Any) -> None:
    """What `--json` means in every command: the result on standard output, and nothing else there."""
    from dr3.files import for_json

    print(json.dumps(for_json(value), indent=2, ensure_ascii=False, allow_nan=False))
