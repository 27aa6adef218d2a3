"""Frozen dataclasses of hyperparameters that a compiled program takes as arguments.

Numbers that only enter the arithmetic are leaves of a JAX pytree: members of a population that differ in them share one
compiled program, so a sweep over learning rates or coefficients compiles once. Everything that decides shapes or which
code runs (sizes, switches, names) is part of the pytree's structure, and a change of it compiles anew.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable
from numbers import Integral, Real
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import jax
import numpy as np
from jax.core import Tracer
from jax.tree_util import GetAttrKey, register_pytree_with_keys

from dr3.errors import UserError
from dr3.plugins import remember

if TYPE_CHECKING:
    from dr3.registry import Registry

T = TypeVar("T")

MOST = 2**31 - 1  # what a whole number on the device can be
# Metadata of a field that older records do not have: at its default it is not written, so that a run keeps its name.
ADDED_LATER = {"added_later": True}

_known: set[type] = set()


def hyperparameters(cls: type[T]) -> type[T]:
    """Make a frozen dataclass check its settings when it is constructed, and register it with JAX.

    Every value must be of its field's kind, the coefficient of a regularizer not below 0, and a method `check`, where
    there is one, refuses what else is out of range.
    Float fields, and the fields named in `TRACED`, are leaves.
    """
    if cls in _known:  # JAX takes a class once; `dr3.register` is written above this decorator, or in its place
        return cls
    _known.add(cls)
    hints = get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]  # ty: ignore[invalid-argument-type]
    leaves = [name for name in names if hints[name] is float or name in getattr(cls, "TRACED", ())]
    fixed = [name for name in names if name not in leaves]
    construct = cls.__init__

    @functools.wraps(construct)
    def checked(self: Any, *values: Any, **named: Any) -> None:
        construct(self, *values, **named)
        for name in names:
            object.__setattr__(self, name, _plain(getattr(self, name)))
        if any(isinstance(getattr(self, name), Tracer) for name in leaves):
            return  # inside a compiled function, as by `dataclasses.replace`: there is no number to look at
        check_settings(self)
        if "coefficient" in names:
            within("coefficient", self.coefficient, 0)
        getattr(self, "check", lambda: None)()

    def flatten(settings: T) -> tuple[list[tuple[GetAttrKey, Any]], tuple[Any, ...]]:
        keyed = [(GetAttrKey(name), getattr(settings, name)) for name in leaves]
        return keyed, tuple(getattr(settings, name) for name in fixed)

    def rebuild(structure: tuple[Any, ...], values: Iterable[Any]) -> T:
        # Past the constructor: the leaves may be tracers, arrays of a population, or placeholders of JAX's own.
        settings = object.__new__(cls)
        for name, value in zip((*leaves, *fixed), (*values, *structure), strict=True):
            object.__setattr__(settings, name, value)
        return settings

    cls.__init__ = checked  # ty: ignore[invalid-assignment]
    register_pytree_with_keys(cls, flatten, rebuild)
    return cls


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
        if (hint is str or (hint == str | None and value is not None)) and not isinstance(value, str):
            raise UserError(f"{name} must be a text, not {value!r}.")
        if hint is float or (NoneType in get_args(hint) and float in get_args(hint) and value is not None):
            if not isinstance(value, Real) or isinstance(value, bool):
                raise UserError(f"{name} must be a number, not {value!r}.")
            if not math.isfinite(value):
                raise UserError(f"{name} must be a finite number, not {value}.")
        elif hint is int:
            _check_whole(name, value)
        elif hint == tuple[int, ...]:
            if not isinstance(value, tuple):
                raise UserError(f"{name} must be whole numbers in a tuple, such as (256, 256), not {value!r}.")
            for one in value:
                _check_whole(f"every number in {name}", one)


def _plain(value: Any) -> Any:
    """Python's own numbers and tuples in the place of arrays: what a configuration can hold."""
    if isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return tuple(np.asarray(value).tolist())
    scalar = isinstance(value, np.generic | np.ndarray | jax.Array) and not isinstance(value, Tracer)
    return value.item() if scalar and np.ndim(value) == 0 else value


def _check_whole(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise UserError(f"{name} must be a whole number, not {value!r}.")
    if value > MOST:
        raise UserError(f"{name} must be at most {MOST}, not {value}.")


def whole_number(name: str, value: Any, least: float = -math.inf) -> int:
    """A count as Python's own integer, also where it is written 1e5 or comes out of numpy."""
    if isinstance(value, Real) and math.isfinite(value) and value == int(value):
        value = int(value)
    _check_whole(name, value)
    within(name, value, least)
    return value


def seconds(name: str, value: Any) -> None:
    """Refuse what is no length of time; None is one that is not given."""
    if value is not None:
        if not isinstance(value, Real) or isinstance(value, bool):
            raise UserError(f"{name} must be a number of seconds, not {value!r}.")
        within(name, float(value), 0)


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
    """The fields of a method or regularizer, its name, and where its class lives if that is not in dr3.

    It is enough to build it again, and equal to itself read back.
    """
    if value is None:
        return None
    later = {
        f.name for f in dataclasses.fields(value) if f.metadata == ADDED_LATER and getattr(value, f.name) == f.default
    }
    fields = {f.name: _record(getattr(value, f.name)) for f in dataclasses.fields(value) if f.name not in later}
    home = remember(type(value))
    return {
        "name": value.name,
        **({} if home is None else {"class": home}),
        **fields,
    }


def _record(item: Any) -> Any:
    """A setting as JSON holds it; one that is made of others with a name, such as the terms of a sum, as theirs."""
    if isinstance(item, tuple):
        return [_record(one) for one in item]
    return to_json(item) if dataclasses.is_dataclass(item) else item


def from_json(registry: Registry, record: dict[str, Any] | None) -> Any:
    """The inverse of `to_json`, with lists turned back into the tuples that JSON cannot hold."""
    if record is None:
        return None

    def built(item: Any) -> Any:
        if isinstance(item, list):
            return tuple(built(one) for one in item)
        return from_json(registry, item) if isinstance(item, dict) else item

    chosen: dict[str, Any] = {key: built(item) for key, item in record.items()}
    return registry.class_of(chosen.pop("name"), chosen.pop("class", None))(**chosen)
