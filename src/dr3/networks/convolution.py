"""A 2-D convolution for batches of images, which on CPU is a few matmuls, of fewer products where that pays."""

from __future__ import annotations

from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from dr3.errors import UserError
from dr3.networks.kernels.convolve import (
    NARROW,
    Padding,
    convolve_by_matmul,
    convolve_by_winograd,
    convolve_by_xla,
    span,
)
from dr3.networks.kernels.winograd import TRANSFORMS

Implementation = Literal["auto", "winograd", "matmul", "xla"]


class Convolution(eqx.Module):
    """x * W + b over the two middle axes: (n, h, w, in) -> (n, h', w', out).

    "SAME" gives h' = ceil(h / stride), with the odd row of zeros at the far side; "VALID" gives
    h' = floor((h - kernel) / stride) + 1. "auto" takes matmuls on CPU and XLA's own convolution elsewhere: inside a
    compiled loop XLA's CPU convolution falls back to a naive kernel, with which an Atari update takes fifteen times as
    long. The results agree up to rounding. In single precision and with many channels the matmuls are Winograd's, which
    cannot be differentiated forwards (`jax.jvp`): "matmul" can.

    Bytes are pixels, and count as [0, 1]; booleans are 0 and 1. They stay what they are until a product needs them.
    """

    weight: Array  # (kernel, kernel, in, out)
    bias: Array  # (out,)
    stride: int = eqx.field(static=True, default=1)
    padding: Padding = eqx.field(static=True, default="SAME")
    implementation: Implementation = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        if self.padding not in get_args(Padding):
            raise UserError(f"padding is {self.padding!r}, but a convolution takes 'SAME' or 'VALID'.")
        if self.implementation not in get_args(Implementation):
            named = ", ".join(map(repr, get_args(Implementation)))
            raise UserError(f"implementation is {self.implementation!r}, but it must be one of {named}.")
        if self.implementation == "winograd" and not self._has_winograd:
            kernel = " x ".join(map(str, self.weight.shape[:2]))
            raise UserError(f"Winograd's convolution is for 2 or 3 strides a side, not {kernel} by {self.stride}.")

    @classmethod
    def glorot(
        cls,
        inputs: int,
        outputs: int,
        kernel: int,
        *,
        key: Array,
        stride: int = 1,
        padding: Padding = "SAME",
        implementation: Implementation = "auto",
    ) -> Convolution:
        """Xavier-uniform over the receptive field, as the public Atari agents initialise; no bias at first."""
        limit = (6.0 / (kernel * kernel * (inputs + outputs))) ** 0.5
        weight = jax.random.uniform(key, (kernel, kernel, inputs, outputs), minval=-limit, maxval=limit)
        return cls(weight, jnp.zeros(outputs), stride, padding, implementation)

    def output_shape(self, height: int, width: int) -> tuple[int, int, int]:
        """(h', w', out) for an image of this size."""
        kernel_height, kernel_width, _, outputs = self.weight.shape
        rows, _ = span(height, kernel_height, self.stride, self.padding)
        columns, _ = span(width, kernel_width, self.stride, self.padding)
        return rows, columns, outputs

    def __call__(self, x: Array) -> Array:
        convolve = {"winograd": convolve_by_winograd, "matmul": convolve_by_matmul, "xla": convolve_by_xla}
        return convolve[self._chosen(x)](x, self._weight_for(x), self.stride, self.padding) + self.bias

    def halved(self, x: Array) -> Array:
        """The largest of every 2 x 2 outputs: (n, h, w, in) -> (n, h' // 2, w' // 2, out); an odd last one is left out.

        As matmuls, all four outputs of a block come from one product, as 4 · out channels of a convolution of stride 2
        whose kernel is one wider: nothing of the size of the whole output is written. COG's encoder, batch 64, one
        core: forward 13 ms instead of 30, with the gradient 56 instead of 67.
        """
        rows, columns, _ = self.output_shape(x.shape[1], x.shape[2])
        if self._chosen(x) == "xla" or self.stride != 1:
            return max_pool(self(x))
        _, top = span(x.shape[1], self.weight.shape[0], 1, self.padding)
        _, left = span(x.shape[2], self.weight.shape[1], 1, self.padding)
        below = 2 * (rows // 2) + self.weight.shape[0] - 1 - x.shape[1] - top
        right = 2 * (columns // 2) + self.weight.shape[1] - 1 - x.shape[2] - left
        x = lax.pad(x, jnp.zeros((), x.dtype), ((0, 0, 0), (top, below, 0), (left, right, 0), (0, 0, 0)))
        weight = self._weight_for(x)
        shifted = [
            jnp.pad(weight, ((i, 1 - i), (j, 1 - j), (0, 0), (0, 0))) for i in range(2) for j in range(2)
        ]  # one for each output of a block
        y = convolve_by_matmul(x, jnp.concatenate(shifted, axis=-1), 2, "VALID")
        first, second, third, fourth = jnp.split(y, 4, axis=-1)
        # In pairs: of a maximum over an axis XLA makes a slower gradient (COG's first layer: 6.0 ms instead of 5.1).
        return jnp.maximum(jnp.maximum(first, second), jnp.maximum(third, fourth)) + self.bias

    def _weight_for(self, x: Array) -> Array:
        return self.weight / 255 if x.dtype == jnp.uint8 else self.weight

    def _chosen(self, x: Array) -> Implementation:
        """How x is convolved."""
        if self.implementation != "auto":
            return self.implementation
        if jax.default_backend() != "cpu":
            return "xla"
        many = x.shape[-1] * self.stride**2 >= NARROW
        # In double precision it is not speed that is asked for, and the theory differentiates forwards.
        single = self.weight.dtype == jnp.float32
        return "winograd" if single and many and self._has_winograd else "matmul"

    @property
    def _has_winograd(self) -> bool:
        return all(-(-side // self.stride) in TRANSFORMS for side in self.weight.shape[:2])


def max_pool(x: Array) -> Array:
    """The largest of every 2 x 2 pixels: (n, h, w, c) -> (n, h // 2, w // 2, c); an odd last row or column is lost."""
    n, height, width, channels = x.shape
    rows, columns = height // 2, width // 2
    blocks = x[:, : 2 * rows, : 2 * columns].reshape(n, rows, 2, columns, 2, channels)
    return jnp.max(blocks, axis=(2, 4))
