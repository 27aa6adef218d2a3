"""Features of observations with parts: an encoder for each picture, joined with the vectors before the dense layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dr3.data.standardisation import Standardisation
from dr3.envs.parts import Part, Parts
from dr3.networks.mlp import MLP, standardised

Seen = tuple[int, ...] | Parts  # what a network is made for: the shape of an observation, or its parts


class MixedEncoder(eqx.Module):
    """What pictures' encoders make of them, and the vectors as they are (or standardised): (n, bytes) -> (n, width).

    Observations are rows of bytes as a table keeps them, or a mapping of the parts themselves.
    """

    encoders: tuple[Any, ...]  # one for each picture
    parts: Parts = eqx.field(static=True)
    width: int = eqx.field(static=True)
    standardisation: Standardisation | None = eqx.field(static=True, default=None)  # of the vectors

    @classmethod
    def create(
        cls,
        parts: Parts,
        encoder: Callable[[tuple[int, ...], Array], Any],
        *,
        key: Array,
        standardisation: Standardisation | None = None,
    ) -> MixedEncoder:
        """`encoder` draws the network of one picture, given its shape and a key; it has a `width`."""
        keys = jax.random.split(key, max(1, len(parts.pictures)))
        made = tuple(encoder(part.shape, of) for part, of in zip(parts.pictures, keys, strict=False))
        return cls(made, parts, sum(one.width for one in made) + parts.numbers, standardisation)

    def __call__(self, observations: Array | Mapping[str, Array]) -> Array:
        seen = observations if isinstance(observations, Mapping) else unpacked(self.parts, observations)
        pairs = zip(self.encoders, self.parts.pictures, strict=True)
        outputs = [encoder(seen[part.name]) for encoder, part in pairs]
        if vectors := [seen[part.name].astype(jnp.float32) for part in self.parts.vectors]:
            outputs.append(standardised(jnp.concatenate(vectors, axis=-1), self.standardisation))
        return jnp.concatenate(outputs, axis=-1)

    def layers(self) -> dict[str, Any]:
        """The layers of all encoders by name, in forward order."""
        pairs = zip(self.encoders, self.parts.pictures, strict=True)
        return {f"{part.name}-{name}": layer for encoder, part in pairs for name, layer in encoder.layers().items()}


class Mixed(eqx.Module):
    """Dense layers over what an encoder makes of all parts. The last layer's output are the features."""

    encoder: MixedEncoder
    dense: MLP
    width: int = eqx.field(static=True)

    def __call__(self, observations: Array | Mapping[str, Array]) -> Array:
        return self.dense(self.encoder(observations))

    def outputs(self, observations: Array) -> dict[str, Array]:
        """What every dense layer passes on, by its name."""
        return self.dense.outputs(self.encoder(observations))

    def layers(self) -> dict[str, Any]:
        return {**self.encoder.layers(), **self.dense.layers()}


def unpacked(parts: Parts, packed: Array) -> dict[str, Array]:
    """Each part of rows of bytes: (n, bytes) -> (n, *shape), as `Parts.unpack` does it on the host."""
    return {part.name: _of(packed[:, start:end], part) for start, end, part in parts.places()}


def _of(packed: Array, part: Part) -> Array:
    if part.kind == "float32":
        packed = jax.lax.bitcast_convert_type(packed.reshape(len(packed), part.size, 4), jnp.float32)
    elif part.kind == "bool":
        packed = packed.astype(jnp.bool_)
    return packed.reshape(len(packed), *part.shape)


def parts_of(network: Any) -> Parts | None:
    """The parts that a network was made for; None where observations have none."""
    while network is not None:
        if isinstance(network, MixedEncoder):
            return network.parts
        inner = (getattr(network, name, None) for name in ("encoder", "trunk"))
        network = next((one for one in inner if one is not None), None)
    return None
