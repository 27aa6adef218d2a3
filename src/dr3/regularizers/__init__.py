"""Explicit terms on a Backup. A regularizer is a dataclass with a `coefficient`, called on a Backup for its penalty."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from jax import Array

from dr3.backup import Backup
from dr3.regularizers.dr3 import DR3


@runtime_checkable
class Regularizer(Protocol):
    """Anything that weighs a Backup: objective = method loss + coefficient * regularizer(backup)."""

    name: ClassVar[str]
    coefficient: float

    def __call__(self, backup: Backup) -> Array: ...


REGULARIZERS: dict[str, type] = {cls.name: cls for cls in (DR3,)}

__all__ = ["DR3", "REGULARIZERS", "Regularizer"]
