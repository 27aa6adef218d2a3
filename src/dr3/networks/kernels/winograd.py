"""Convolutions of stride 1 with fewer products: Winograd's F(2, k), after Lavin and Gray (2016).

Two neighbouring outputs of a kernel of length k need k + 1 products instead of 2k: y = Aᵀ[(G g) ⊙ (Bᵀ d)], where d is
a tile of k + 1 inputs. In two dimensions that is 9 instead of 16 for k = 2 and 16 instead of 36 for k = 3, and the same
in both gradients. As important on a CPU: transformed tiles are smaller than the k² views that a matmul per position
reads.

By hand because XLA has it for GPUs only. An update of the Nature CNN with DR3 takes 135 ms on one core and 79 on two;
with a matmul per position 160 and 87. Numbers differ from the plain sum by rounding alone: all coefficients are 0, ±1
or ±½.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax


class Transform(NamedTuple):
    """The three matrices of F(2, k)."""

    inputs: np.ndarray  # Bᵀ: (k + 1, k + 1)
    kernel: np.ndarray  # G: (k + 1, k)
    outputs: np.ndarray  # Aᵀ: (2, k + 1)


# By the length of the kernel.
TRANSFORMS = {
    2: Transform(
        np.array([[1, -1, 0], [0, 1, 0], [0, -1, 1]]),
        np.array([[1, 0], [1, 1], [0, 1]]),
        np.array([[1, 1, 0], [0, 1, 1]]),
    ),
    3: Transform(
        np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]]),
        np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
        np.array([[1, 1, 1, 0], [0, 1, -1, -1]]),
    ),
}

Grid = Sequence[Sequence[Array]]  # arrays by their place in a tile: separate ones, which XLA never has to stack


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def correlate(x: Array, weight: Array, before: tuple[int, int], size: tuple[int, int]) -> Array:
    """y[r, s] = Σ_ij x[r + i - top, s + j - left] · W[:, i, j], where x is zero outside, for (r, s) up to `size`.

    x: (n, h, w, in), floats or bytes; weight: (out, k, l, in), k and l 2 or 3; before: (top, left). -> (n, *size, out)

    The gradient is written out below, because both of its parts are convolutions again: that by x is this very
    function of the flipped kernel. So it can be differentiated backwards, as often as one likes, but not forwards.
    """
    tall, wide = _transforms(weight)
    places = _products(_tiles(x, weight, before, size), _kernels(weight), (((3,), (1,)), ((), ())))
    return _image(_both_ways(tall.outputs, wide.outputs, places), size)


def _forward(
    x: Array, weight: Array, before: tuple[int, int], size: tuple[int, int]
) -> tuple[Array, tuple[Array, Array]]:
    # Not the transformed inputs: to make them again costs less than to carry them out of the cache and back.
    return correlate(x, weight, before, size), (x, weight)


def _backward(
    before: tuple[int, int], size: tuple[int, int], kept: tuple[Array, Array], slope: Array
) -> tuple[Array | np.ndarray, Array]:
    x, weight = kept
    tall, wide = _transforms(weight)
    tile_slopes = _both_ways(tall.outputs.T, wide.outputs.T, _channels_first(_outputs_of_tiles(slope)))
    products = _products(tile_slopes, _tiles(x, weight, before, size), (((1, 2, 3), (0, 1, 2)), ((), ())))
    of_kernel = _both_ways(tall.kernel.T, wide.kernel.T, products)
    of_weight = jnp.stack([jnp.stack(row, axis=1) for row in of_kernel], axis=1)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return np.zeros(x.shape, jax.dtypes.float0), of_weight
    flipped = weight[:, ::-1, ::-1].transpose(3, 1, 2, 0)
    rest = weight.shape[1] - 1 - before[0], weight.shape[2] - 1 - before[1]
    return correlate(slope, flipped, rest, (x.shape[1], x.shape[2])), of_weight


correlate.defvjp(_forward, _backward)


def _transforms(weight: Array) -> tuple[Transform, Transform]:
    return TRANSFORMS[weight.shape[1]], TRANSFORMS[weight.shape[2]]


def _tiles(x: Array, weight: Array, before: tuple[int, int], size: tuple[int, int]) -> Grid:
    """Bᵀ d B of every tile: (k + 1) x (l + 1) arrays (n, rows / 2, columns / 2, in), rounded up."""
    rows, columns = _halves(size)
    # One pair more than there are tiles: a tile's last pixels are the first ones of the next.
    pairs = _in_pairs(x, before, (rows + 1, columns + 1))

    def pixels(i: int, j: int) -> Array:
        (above, down), (beside, across) = divmod(i, 2), divmod(j, 2)
        return pairs[:, above : above + rows, down, beside : beside + columns, across].astype(weight.dtype)

    tall, wide = _transforms(weight)
    grid = [[pixels(i, j) for j in range(len(wide.inputs))] for i in range(len(tall.inputs))]
    return _both_ways(tall.inputs, wide.inputs, grid)


def _kernels(weight: Array) -> Grid:
    """G g Gᵀ: (k + 1) x (l + 1) arrays (out, in)."""
    tall, wide = _transforms(weight)
    grid = [[weight[:, i, j] for j in range(weight.shape[2])] for i in range(weight.shape[1])]
    return _both_ways(tall.kernel, wide.kernel, grid)


def _outputs_of_tiles(y: Array) -> Grid:
    """(n, h, w, c) -> 2 x 2 arrays (n, h / 2, w / 2, c), rounded up."""
    pairs = _in_pairs(y, (0, 0), _halves((y.shape[1], y.shape[2])))
    return [[pairs[:, :, i, :, j] for j in range(2)] for i in range(2)]


def _image(outputs: Grid, size: tuple[int, int]) -> Array:
    """The way back: 2 x 2 arrays (n, rows, columns, c) -> (n, *size, c)."""
    n, rows, columns, channels = outputs[0][0].shape
    pairs = jnp.stack([jnp.stack(row, axis=3) for row in outputs], axis=2)
    return pairs.reshape(n, 2 * rows, 2 * columns, channels)[:, : size[0], : size[1]]


def _in_pairs(x: Array, before: tuple[int, int], pairs: tuple[int, int]) -> Array:
    """(n, h, w, c) -> (n, pairs down, 2, pairs across, 2, c), after zeros around it, or cropped."""
    n, height, width, channels = x.shape
    (top, left), (rows, columns) = before, pairs
    padding = ((0, 0, 0), (top, 2 * rows - height - top, 0), (left, 2 * columns - width - left, 0), (0, 0, 0))
    return lax.pad(x, jnp.zeros((), x.dtype), padding).reshape(n, rows, 2, columns, 2, channels)


def _halves(size: tuple[int, int]) -> tuple[int, int]:
    return -(-size[0] // 2), -(-size[1] // 2)


def _channels_first(grid: Grid) -> Grid:
    """(n, rows, columns, c) -> (c, n, rows, columns), as a product with the identity.

    Of a transpose XLA makes a part of everything that reads it, and each reader then strides through memory: in a
    profile of the Nature network that took 27 ms of processor time in an update, where now it is 7.
    What comes out of a product is there to be read.
    """
    identity = jnp.eye(grid[0][0].shape[-1], dtype=grid[0][0].dtype)
    return [[lax.dot_general(identity, array, (((1,), (3,)), ((), ()))) for array in row] for row in grid]


def _products(left: Grid, right: Grid, dimensions: lax.DotDimensionNumbers) -> Grid:
    """Place by place."""
    return [
        [lax.dot_general(a, b, dimensions) for a, b in zip(*row, strict=True)] for row in zip(left, right, strict=True)
    ]


def _both_ways(tall: np.ndarray, wide: np.ndarray, grid: Grid) -> Grid:
    """tall · grid · wideᵀ, for a grid of arrays."""
    sideways = [_combine(wide, row) for row in grid]
    columns = [_combine(tall, column) for column in zip(*sideways, strict=True)]
    return list(zip(*columns, strict=True))


def _combine(matrix: np.ndarray, arrays: Sequence[Array]) -> list[Array]:
    """matrix · arrays, without the terms that are zero."""
    return [
        sum((float(factor) * array for factor, array in terms[1:]), float(terms[0][0]) * terms[0][1])
        for terms in ([(f, a) for f, a in zip(row, arrays, strict=True) if f] for row in matrix)
    ]
