"""Random crops: pictures moved a little, so that a critic cannot know a state by its pixels."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array


def random_crops(pictures: Array, padding: int, key: Array) -> Array:
    """Each picture padded at every edge and cut back to its size at a place of its own: (n, h, w, c), any type.

    Padding repeats the pixels at the edge, as is usual since DrQ (Kostrikov et al., 2021); COG's release pads with
    black, and moves a picture anew for every network that sees it.
    """
    n, height, width, _ = pictures.shape
    down, right = jax.random.randint(key, (2, n, 1), 0, 2 * padding + 1) - padding
    rows = jnp.clip(jnp.arange(height) + down, 0, height - 1)
    columns = jnp.clip(jnp.arange(width) + right, 0, width - 1)
    # Whole rows first: a row is one piece of memory.
    moved = jnp.take_along_axis(pictures, rows[:, :, None, None], axis=1)
    return jnp.take_along_axis(moved, columns[:, None, :, None], axis=2)
