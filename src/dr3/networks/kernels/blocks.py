"""Many rows, a block at a time: what the layers of a network hand each other then stays in a CPU's cache."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import Array, lax

FEWEST = 8  # rows in a block: below, a product has too little to do

# Whether what is compiled runs on one core of a CPU. Two cores share a product well only if it is a large one.
ONE_CORE = jax.make_user_context(default_value=False)


def blocks_for(rows: int, bytes_per_row: int, cached: int) -> int:
    """Into how many equal blocks rows are best cut: the fewest of which a layer's outputs take at most `cached`."""
    if jax.default_backend() != "cpu":
        return 1  # wide processors want all rows at once
    divisors = (count for count in range(1, rows // FEWEST + 1) if rows % count == 0)
    return next((count for count in divisors if rows // count * bytes_per_row <= cached), 1)


def in_blocks(function: Callable[[Array], Array], rows: Array, blocks: int) -> Array:
    """function(rows), block by block, where each row's result depends on that row alone: (n, …) -> (n, …)."""
    if blocks == 1:
        return function(rows)
    results = lax.map(function, rows.reshape(blocks, -1, *rows.shape[1:]))
    return results.reshape(len(rows), *results.shape[2:])
