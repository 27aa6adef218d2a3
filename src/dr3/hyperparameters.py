"""Frozen dataclasses of hyperparameters that a compiled program takes as arguments.

Numbers that only enter the arithmetic are leaves of a JAX pytree: members of a population that differ in them share one
compiled program, so a sweep over learning rates or coefficients compiles once. Everything that decides shapes or which
code runs (sizes, switches, names) is part of the pytree's structure, and a change of it compiles anew.
"""

from __future__ import annotations

import dataclasses
import math
from numbers import Integral, Real
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import jax
import numpy as np

from dr3.errors import UserError, did_you_mean

T = TypeVar("T")

MOST = 2**31 - 1  # what a whole number on the device can be


def hyperparameters(cls: type[T]) -> type[T]:
    """Register a frozen dataclass with JAX: its float fields, and the fields named in `TRACED`, are leaves."""
    hints = get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]  # ty: ignore[invalid-argument-type]
    also = getattr(cls, "TRACED", ())
    leaves = [name for name in names if hints[name] is float or name in also]
    return jax.tree_util.register_dataclass(
        cls, data_fields=leaves, meta_fields=[name for name in names if name not in leaves]
    )


def check_settings(settings: Any) -> None:
    """Refuse a value that is not of its field's kind. (Python looks at no annotation, and "no" counts as true.)"""
    hints = get_type_hints(type(settings))
    for field in dataclasses.fields(settings):
        name, hint, value = field.name, hints[field.name], getattr(settings, field.name)
        choices = _choices(hint)
        if choices and value not in choices:
            raise UserError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}.")
        if hint is bool and not isinstance(value, bool):
            raise UserError(f"{name} must be True or False, not {value!r}.")
        if hint is float or (NoneType in get_args(hint) and float in get_args(hint) and value is not None):
            if not isinstance(value, Real):
                raise UserError(f"{name} must be a number, not {value!r}.")
        elif hint is int:
            _check_whole(name, value)
        elif hint == tuple[int, ...]:
            if not isinstance(value, tuple | list):
                raise UserError(f"{name} must be whole numbers in a tuple, such as (256, 256), not {value!r}.")
            for one in value:
                _check_whole(f"every number in {name}", one)


def _check_whole(name: str, value: Any) -> None:
    if not isinstance(value, Integral):
        raise UserError(f"{name} must be a whole number, not {value!r}.")
    if value > MOST:
        raise UserError(f"{name} must be at most {MOST}, not {value}.")


def plain(settings: T) -> T:
    """The same with Python's own numbers and tuples in the place of numpy's: what a configuration can hold."""
    hints = get_type_hints(type(settings))
    changed = {}
    for field in dataclasses.fields(settings):  # ty: ignore[invalid-argument-type]
        value = getattr(settings, field.name)
        if isinstance(value, np.generic):
            changed[field.name] = value.item()
        elif hints[field.name] == tuple[int, ...] and isinstance(value, list | np.ndarray):
            changed[field.name] = tuple(np.asarray(value).tolist())
    return dataclasses.replace(settings, **changed) if changed else settings  # ty: ignore[invalid-argument-type]


def whole(name: str, value: Any, least: float = -math.inf) -> int:
    """A count as Python's own integer, also where it is written 1e5 or comes out of numpy."""
    if isinstance(value, Real) and math.isfinite(value) and value == int(value):
        value = int(value)
    _check_whole(name, value)
    within(name, value, least)
    return value


def _choices(hint: Any) -> tuple[Any, ...]:
    """All values of a Literal, or of one that may be None; none of any other type."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    parts = get_args(hint)
    if NoneType in parts and all(part is NoneType or get_origin(part) is Literal for part in parts):
        return (*(value for part in parts for value in get_args(part)), None)
    return ()


def within(name: str, value: float, least: float, most: float = math.inf) -> None:
    """Refuse a setting outside its interval, by name."""
    if not (least <= value <= most and math.isfinite(value)):
        interval = f"at least {least}" if most == math.inf else f"between {least} and {most}"
        raise UserError(f"{name} must be {interval}, not {value}.")


def to_json(value: Any) -> dict[str, Any] | None:
    """The fields of a method or regularizer, and its name: enough to build it again, and equal to itself read back."""
    if value is None:
        return None
    fields = {key: list(item) if isinstance(item, tuple) else item for key, item in dataclasses.asdict(value).items()}
    return {"name": value.name, **fields}


def from_json(registry: dict[str, type], record: dict[str, Any] | None) -> Any:
    """The inverse of `to_json`, with lists turned back into the tuples that JSON cannot hold."""
    if record is None:
        return None
    chosen = {key: tuple(item) if isinstance(item, list) else item for key, item in record.items() if key != "name"}
    return lookup(registry, record["name"], "name")(**chosen)


def lookup(registry: dict[str, type], name: str, kind: str) -> Any:
    """The class behind a name, or one sentence that lists the names there are."""
    if name not in registry:
        raise UserError(
            f"There is no {kind} {name!r}; there are {', '.join(sorted(registry))}{did_you_mean(name, registry)}"
        )
    return registry[name]
