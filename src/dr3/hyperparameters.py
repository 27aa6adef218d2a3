"""Frozen dataclasses of hyperparameters that a compiled program takes as arguments.

Numbers that only enter the arithmetic are leaves of a JAX pytree: members of a population that differ in them share one
compiled program, so a sweep over learning rates or coefficients compiles once. Everything that decides shapes or which
code runs (sizes, switches, names) is part of the pytree's structure, and a change of it compiles anew.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, get_type_hints

import jax

from dr3.errors import UserError

T = TypeVar("T")


def hyperparameters(cls: type[T]) -> type[T]:
    """Register a frozen dataclass with JAX: its float fields, and the fields named in `TRACED`, are leaves."""
    hints = get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]  # ty: ignore[invalid-argument-type]
    also = getattr(cls, "TRACED", ())
    leaves = [name for name in names if hints[name] is float or name in also]
    return jax.tree_util.register_dataclass(
        cls, data_fields=leaves, meta_fields=[name for name in names if name not in leaves]
    )


def to_json(value: Any) -> dict[str, Any] | None:
    """The fields of a method or regularizer, and its name: enough to build it again."""
    return None if value is None else {"name": value.name, **dataclasses.asdict(value)}


def from_json(registry: dict[str, type], record: dict[str, Any] | None) -> Any:
    """The inverse of `to_json`, with lists turned back into the tuples that JSON cannot hold."""
    if record is None:
        return None
    chosen = {key: tuple(item) if isinstance(item, list) else item for key, item in record.items() if key != "name"}
    return lookup(registry, record["name"], "name")(**chosen)


def lookup(registry: dict[str, type], name: str, kind: str) -> Any:
    """The class behind a name, or one sentence that lists the names there are."""
    if name not in registry:
        raise UserError(f"There is no {kind} {name!r}; there are {', '.join(sorted(registry))}.")
    return registry[name]
