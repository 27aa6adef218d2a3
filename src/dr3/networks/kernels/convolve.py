"""Convolutions as XLA's own, as matmuls, and as Winograd's: equal results, one switch (`networks.convolution`)."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jax import Array, lax

from dr3.errors import UserError
from dr3.networks.kernels.winograd import correlate

Padding = Literal["SAME", "VALID"]

# A product needs this many channels to be worth its call, one per kernel position or Winograd's; with fewer, positions
# are gathered into one. MinAtar-sized update with DR3 (3x3x4 -> 16): 350 per second by position, 540 gathered. First
# Atari layer (8x8x4 -> 32, stride 4: 64 channels once in blocks), 32 images, one core, ms forward | with the weights'
# gradient: gathered 3.9 | 8.4, by position 4.8 | 10.5, one product whose outputs are shifted and added 3.3 | 14.8,
# Winograd's 1.8 | 8.1; XLA's own convolution, in a loop, 4.5 | 265.
NARROW = 32


def convolve_by_xla(x: Array, weight: Array, stride: int, padding: Padding) -> Array:
    """(n, h, w, in), (kh, kw, in, out) -> (n, h', w', out)."""
    x = x.astype(weight.dtype)
    return lax.conv_general_dilated(x, weight, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convolve_by_matmul(x: Array, weight: Array, stride: int, padding: Padding) -> Array:
    """The same, as matmuls of what every kernel position sees."""
    rows, columns, x, weight = _with_stride_1(x, weight, stride, padding)
    outputs, tall, wide, _ = weight.shape
    x = x.astype(weight.dtype)
    views = [x[:, i : i + rows, j : j + columns] for i in range(tall) for j in range(wide)]
    # Both forms multiply by (out, in): its gradient is then (outputs)ᵀ(inputs), which transposes the narrower
    # of the two. With (in, out) XLA transposes the wide one, and that takes 1.5 to 2.2 times as long.
    if x.shape[-1] < NARROW:
        return _times_transposed(jnp.concatenate(views, axis=-1), weight.reshape(outputs, -1))
    # Split, not indexed: the gradient of a split is one concatenation, that of indexing is a sum of padded arrays.
    kernels = lax.split(weight.reshape(outputs, tall * wide, -1).transpose(1, 0, 2), (1,) * len(views))
    products = [_times_transposed(view, kernel.squeeze(0)) for view, kernel in zip(views, kernels, strict=True)]
    return sum(products[1:], products[0])


def convolve_by_winograd(x: Array, weight: Array, stride: int, padding: Padding) -> Array:
    """The same, with fewer products, for kernels of 2 or 3 blocks a side."""
    if stride > 1:
        rows, columns, x, weight = _with_stride_1(x, weight, stride, padding)
        return correlate(x, weight, (0, 0), (rows, columns))
    # Zeros around x are left to the tiles, so that the gradient is asked only for what is inside.
    rows, top = span(x.shape[1], weight.shape[0], 1, padding)
    columns, left = span(x.shape[2], weight.shape[1], 1, padding)
    return correlate(x, weight.transpose(3, 0, 1, 2), (top, left), (rows, columns))


def _with_stride_1(x: Array, weight: Array, stride: int, padding: Padding) -> tuple[int, int, Array, Array]:
    """h', w', and an image and a kernel (out, k, l, channels) whose convolution of stride 1, unpadded, is this one.

    Blocks of stride x stride pixels become channels. A kernel that the stride does not divide is filled up with zeros.
    """
    kernel_height, kernel_width, _, _ = weight.shape
    rows, top = span(x.shape[1], kernel_height, stride, padding)
    columns, left = span(x.shape[2], kernel_width, stride, padding)
    # Kernel and image in blocks. Negative padding crops the pixels at the far side that VALID never reaches.
    tall, wide = -(-kernel_height // stride), -(-kernel_width // stride)
    below = (rows + tall - 1) * stride - x.shape[1] - top
    right = (columns + wide - 1) * stride - x.shape[2] - left
    x = lax.pad(x, jnp.zeros((), x.dtype), ((0, 0, 0), (top, below, 0), (left, right, 0), (0, 0, 0)))
    spare = (0, tall * stride - kernel_height), (0, wide * stride - kernel_width)
    weight = jnp.pad(weight, (*spare, (0, 0), (0, 0))).transpose(3, 0, 1, 2)
    return rows, columns, space_to_depth(x, stride), space_to_depth(weight, stride)


def space_to_depth(x: Array, block: int) -> Array:
    """(n, h, w, c) -> (n, h / block, w / block, block · block · c); the block must divide h and w."""
    n, height, width, channels = x.shape
    if x.dtype == jnp.uint8 and channels == 4:
        # Four stacked frames: their bytes move as one word, which takes 3 % off an update of the Nature network.
        words = space_to_depth(lax.bitcast_convert_type(x, jnp.uint32)[..., None], block)
        return lax.bitcast_convert_type(words, jnp.uint8).reshape(*words.shape[:3], -1)
    x = x.reshape(n, height // block, block, width // block, block, channels)
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(n, height // block, width // block, block * block * channels)


def _times_transposed(x: Array, weight: Array) -> Array:
    """(…, in), (out, in) -> (…, out)."""
    return lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())))


def span(size: int, kernel: int, stride: int, padding: Padding) -> tuple[int, int]:
    """How many outputs an axis gives, and how many zeros go before it."""
    if padding == "SAME":
        outputs = -(-size // stride)
        return outputs, max((outputs - 1) * stride + kernel - size, 0) // 2
    if size < kernel:
        raise UserError(f"An image side of {size} is smaller than the kernel of {kernel}: use padding 'SAME'.")
    return (size - kernel) // stride + 1, 0
