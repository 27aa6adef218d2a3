"""Settings in one word: `dr3:0.03`, `dr3:0.03:stop_gradient=next`, `grid16smoothobs:size=1024:behavior=random`.

A name, then what follows it between colons: values in the order of the settings, or `setting=value`. A switch is turned
on by its name alone.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from dr3.errors import UserError, did_you_mean

LARGEST = 2**53  # beyond it, numbers as they are read here skip some


def split(word: str) -> tuple[str, list[str]]:
    """The name, and the settings that follow it."""
    name, *settings = word.split(":")
    return name, settings


def settings_for(function: Callable[..., Any], word: str) -> dict[str, Any]:
    """The keyword arguments that `word` spells for a function or a dataclass, checked against its annotations."""
    name, parts = split(word)
    hints = get_type_hints(function.__init__ if inspect.isclass(function) else function)
    known = [p.name for p in inspect.signature(function).parameters.values() if p.name in hints]
    ordered = iter(known)
    settings: dict[str, Any] = {}
    for part in parts:
        key, has_value, text = part.partition("=")
        if not has_value and key in known and hints[key] is bool:
            text = "true"
        elif not has_value:
            key, text = next(ordered, ""), part
        if key not in known:
            near = did_you_mean(key or part, known)
            raise UserError(f"{word!r}: {name} has no setting {key or part!r}; it has {', '.join(known)}{near}")
        if key in settings:
            raise UserError(f"{word!r}: {key} is set twice.")
        settings[key] = _read(word, key, hints[key], text)
    return settings


def spell(value: Any) -> str:
    """The word for a dataclass with a name: its first setting, then those that are not at their default.

    A sum is the words of its terms, joined by +; what multiplies all of them is in theirs.
    """
    if terms := getattr(value, "terms", ()):
        first = dataclasses.fields(value)[0].name
        factor = getattr(value, first)
        return "+".join(spell(dataclasses.replace(term, **{first: factor * getattr(term, first)})) for term in terms)
    first, *rest = dataclasses.fields(value)
    settings = {field.name: getattr(value, field.name) for field in rest}
    changed = {field.name: settings[field.name] for field in rest if settings[field.name] != field.default}
    return spell_settings(f"{value.name}:{_spell_number(getattr(value, first.name))}", changed)


def spell_settings(name: str, settings: Mapping[str, Any]) -> str:
    """The word for a name with settings: what `settings_for` reads."""
    return ":".join([name, *(key if value is True else f"{key}={value}" for key, value in settings.items())])


def _spell_number(number: float) -> str:
    """The shortest text that reads back as the same number."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def _read(word: str, key: str, hint: Any, text: str) -> Any:
    choices = [item for part in (hint, *get_args(hint)) if get_origin(part) is Literal for item in get_args(part)]
    if choices:
        if text in choices:
            return text
        raise UserError(f"{word!r}: {key} is one of {', '.join(map(str, choices))}, not {text!r}.")
    if hint is bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise UserError(f"{word!r}: {key} is true or false, not {text!r}.")
    if hint is str:
        return text
    try:
        return count(text) if hint is int else _finite(text)
    except ValueError:
        kind = "whole number" if hint is int else "number"
        raise UserError(f"{word!r}: {key} must be a {kind}, not {text!r}.") from None


def count(text: str) -> int:
    """A whole number, also as `1e6` or `5_000`. ValueError for anything else."""
    number = _finite(text)
    if abs(number) > LARGEST:
        raise ValueError(f"{text[:20]} is too large")
    if number != int(number):
        raise ValueError(f"{text} is not a whole number")
    return int(number)


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite")
    return number
