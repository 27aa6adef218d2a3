"""Observations with parts, pictures and vectors: one row of bytes each, and what lies where in it.

A row of bytes is stored, mapped, drawn and hashed like any other observation; only what looks at it (a network, a
description, an exported policy) takes it apart. So pictures stay bytes, and vectors keep all their digits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.errors import UserError

PICTURE = 3  # sides of a part that is a picture: height, width, channels
NUMBERS = np.dtype("<f4")  # what vectors are kept as
KINDS = {"uint8": np.dtype(np.uint8), "bool": np.dtype(np.bool_), "float32": NUMBERS}


@dataclass(frozen=True)
class Part:
    """One of them."""

    name: str
    shape: tuple[int, ...]  # (height, width, channels) of a picture; anything else is a vector, unrolled
    kind: str  # uint8 or bool (pictures alone), or float32

    @property
    def is_picture(self) -> bool:
        return len(self.shape) == PICTURE

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * KINDS[self.kind].itemsize


@dataclass(frozen=True)
class Parts:
    """All parts of an observation, in the order of their names."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        for part in self.parts:
            kinds = KINDS if part.is_picture else ("float32",)
            if part.kind not in kinds or min(part.shape, default=1) < 1 or not part.name:
                raise UserError(f"the part {part.name!r} of observations cannot be {part.kind} of shape {part.shape}.")
        if len({part.name for part in self.parts}) < len(self.parts) or not self.parts:
            raise UserError("the parts of observations need names, each its own.")

    @classmethod
    def of(cls, observation: Any, *, rows: int | None = None) -> Parts | None:
        """The parts of a mapping or a tuple; None where none of them is a picture: then it is one vector (`flatten`).

        Args:
            observation: What a world or a log gives.
            rows: How many observations each part holds; None where it is one.
        """
        if not isinstance(observation, Mapping | tuple):
            return None
        leading = 0 if rows is None else 1
        found = []
        for name, leaf in named_leaves(observation).items():
            shape, picture = leaf.shape[leading:], leaf.ndim - leading == PICTURE
            kind = str(leaf.dtype) if picture and str(leaf.dtype) in ("uint8", "bool") else "float32"
            found.append(Part(name, shape if picture else (math.prod(shape),), kind))
        return cls(tuple(found)) if any(part.is_picture for part in found) else None

    @property
    def nbytes(self) -> int:
        """Of one observation."""
        return sum(part.nbytes for part in self.parts)

    @property
    def vectors(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if not part.is_picture)

    @property
    def pictures(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.is_picture)

    @property
    def numbers(self) -> int:
        """How many numbers all vectors have together."""
        return sum(part.size for part in self.vectors)

    def pack(self, observation: Any, *, rows: int | None = None) -> NDArray[np.uint8]:
        """A mapping or a tuple as a row of bytes, or as `rows` of them: (bytes,) or (rows, bytes).

        Args:
            observation: With these parts.
            rows: How many observations each part holds; None where it is one.

        Raises:
            UserError: A part is missing, of another shape, or not finite.
        """
        count = 1 if rows is None else rows
        given = named_leaves(observation)
        if set(given) != {part.name for part in self.parts}:
            raise UserError(
                f"Observations have the parts {', '.join(p.name for p in self.parts)}, not {', '.join(given)}."
            )
        columns = []
        for part in self.parts:
            leaf = given[part.name]
            if leaf.dtype.kind not in "biuf" or leaf.size != count * part.size:
                raise UserError(
                    f"The part {part.name!r} of {count} observations must be numbers of shape {part.shape} each, not "
                    f"{leaf.dtype} of {leaf.shape}."
                )
            if part.kind != "float32" and leaf.dtype != KINDS[part.kind]:
                raise UserError(
                    f"The part {part.name!r} of observations must be of type {part.kind}, not {leaf.dtype}."
                )
            with np.errstate(over="ignore"):
                values = np.ascontiguousarray(leaf.reshape(count, part.size), KINDS[part.kind])
            if part.kind == "float32" and not np.isfinite(values).all():
                row = int(np.argmin(np.isfinite(values).all(axis=1)))
                raise UserError(f"The part {part.name!r} of observation {row} holds a number that is not finite.")
            columns.append(values.view(np.uint8))
        packed = np.concatenate(columns, axis=1)
        return packed[0] if rows is None else packed

    def unpack(self, packed: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Each part by its name: (…, bytes) -> (…, *shape)."""
        return {part.name: _unpacked(packed[..., start:end], part) for start, end, part in self.places()}

    def vectors_of(self, packed: NDArray[np.uint8]) -> NDArray[np.float32]:
        """All vectors side by side: (…, bytes) -> (…, numbers)."""
        found = [_unpacked(packed[..., start:end], part) for start, end, part in self.places() if not part.is_picture]
        return np.concatenate([np.zeros((*packed.shape[:-1], 0), np.float32), *found], axis=-1)

    def places(self) -> list[tuple[int, int, Part]]:
        """The first byte of each part, the one behind its last, and the part."""
        ends = np.cumsum([part.nbytes for part in self.parts]).tolist()
        return [(end - part.nbytes, end, part) for end, part in zip(ends, self.parts, strict=True)]

    def to_json(self) -> str:
        """As text that `from_json` reads."""
        return json.dumps([[part.name, list(part.shape), part.kind] for part in self.parts])

    @classmethod
    def from_json(cls, text: str) -> Parts:
        """The inverse.

        Args:
            text: What `to_json` wrote.

        Raises:
            UserError: It is not that.
        """
        try:
            return cls(
                tuple(Part(str(name), tuple(map(int, shape)), str(kind)) for name, shape, kind in json.loads(text))
            )
        except (ValueError, TypeError):
            raise UserError(f"{text[:80]!r} does not describe the parts of observations.") from None


class Vectors:
    """The vectors of a column of packed observations, as a column of its own: (N, numbers), some rows at a time."""

    ndim = 2

    def __init__(self, observations: Any, parts: Parts) -> None:
        self.observations, self.parts = observations, parts

    def __len__(self) -> int:
        return len(self.observations)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.parts.numbers

    def __getitem__(self, index: Any) -> NDArray[np.float32]:
        return self.parts.vectors_of(self.observations[index])

    @property
    def _mmap(self) -> Any:  # whose pages `let_go` gives back
        return getattr(self.observations, "_mmap", None)

    @property
    def strides(self) -> tuple[int, ...]:
        return self.observations.strides


def _unpacked(packed: NDArray[np.uint8], part: Part) -> NDArray[Any]:
    values = np.ascontiguousarray(packed).view(KINDS[part.kind])
    return values.reshape(*packed.shape[:-1], *part.shape)


def named_leaves(observation: Any, prefix: str = "") -> dict[str, NDArray[Any]]:
    """The parts by name, in alphabetical order at every level: those of a mapping in a mapping are `outer.inner`."""
    if isinstance(observation, Mapping):
        pairs = [(str(key), observation[key]) for key in sorted(observation)]
    elif isinstance(observation, tuple):
        pairs = [(str(number), one) for number, one in enumerate(observation)]
    else:
        return {prefix: np.asarray(observation)}
    found: dict[str, NDArray[Any]] = {}
    for name, one in pairs:
        found |= named_leaves(one, f"{prefix}.{name}" if prefix else name)
    return found
