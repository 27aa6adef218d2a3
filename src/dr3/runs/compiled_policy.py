"""What a critic says of rows, as a compiled program: a handful of them, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from dr3.methods import Method, Spec

# Rows of a program: the smallest that holds all rows is used, and the largest for one block of many after the other.
SIZES = (1, 8, 64, 512)

OfRows = Callable[..., Any]  # (method, critic, spec, *rows) -> arrays (n, …), each row from that row alone


class CompiledPolicy:
    """A method's functions of one critic. Members and checkpoints of equal shapes share what is compiled."""

    def __init__(self, method: Method, critic: Any, spec: Spec) -> None:
        self.method, self.critic = method, critic
        # Taken apart once: walking through a network's modules at each call would take longer than the network.
        leaves, self._structure = jax.tree.flatten((method, critic))
        self._leaves = [jnp.asarray(leaf) for leaf in leaves]
        self._spec = spec

    def __call__(self, function: OfRows, *rows: NDArray[Any] | None) -> Any:
        """function(method, critic, spec, *rows) as numpy arrays, in blocks; the first says how many rows there are."""
        first = rows[0]
        assert first is not None
        count = len(first)
        size = next((size for size in SIZES if count <= size), SIZES[-1])
        results = []
        for start in range(0, max(count, 1), size):
            block = [None if column is None else _filled(column[start : start + size], size) for column in rows]
            results.append(_of_block(function, self._structure, self._spec, self._leaves, *block))
        return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *results)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _of_block(function: OfRows, structure: Any, spec: Spec, leaves: list[jax.Array], *rows: Any) -> Any:
    method, critic = jax.tree.unflatten(structure, leaves)
    return function(method, critic, spec, *rows)


def _filled(rows: NDArray[Any], size: int) -> NDArray[Any]:
    """With zeros behind, which make up a whole block."""
    return np.pad(rows, ((0, size - len(rows)), *((0, 0),) * (rows.ndim - 1))) if len(rows) < size else rows
