from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.errors import UserError
from dr3.networks.convolution import Convolution
from dr3.networks.kernels.convolve import convolve_by_matmul, convolve_by_xla, space_to_depth
from dr3.networks.kernels.winograd import TRANSFORMS

# (height, width, in), kernel (height, width), out, stride, paddings
SHAPES = {
    "nature 1": ((84, 84, 4), (8, 8), 32, 4, ("SAME", "VALID")),
    "nature 2": ((21, 21, 32), (4, 4), 64, 2, ("SAME",)),
    "nature 2 after VALID": ((20, 20, 32), (4, 4), 64, 2, ("VALID",)),
    "nature 3": ((11, 11, 64), (3, 3), 64, 1, ("SAME",)),
    "nature 3 after VALID": ((9, 9, 64), (3, 3), 64, 1, ("VALID",)),
    "minatar": ((10, 10, 4), (3, 3), 16, 1, ("VALID",)),
    "odd sides": ((23, 18, 3), (8, 8), 5, 4, ("SAME", "VALID")),
    "stride does not divide the kernel": ((13, 10, 3), (3, 5), 4, 2, ("SAME", "VALID")),
    "kernel smaller than the stride": ((11, 8, 2), (1, 2), 3, 3, ("SAME",)),
}
CASES = [
    pytest.param(*shape, padding, id=f"{name}, {padding}")
    for name, (*shape, paddings) in SHAPES.items()
    for padding in paddings
]


def test_hand_computed():
    # Rows 1 2 3 / 4 5 6 / 7 8 9 with the kernel 1 0 / 0 -1: x[i, j] - x[i + 1, j + 1] = -4 everywhere inside.
    image = jnp.arange(1.0, 10.0).reshape(1, 3, 3, 1)
    kernel = jnp.array([[1.0, 0.0], [0.0, -1.0]]).reshape(2, 2, 1, 1)
    layer = Convolution(kernel, jnp.array([0.5]), padding="VALID", implementation="matmul")
    np.testing.assert_array_equal(layer(image)[0, :, :, 0], [[-3.5, -3.5], [-3.5, -3.5]])
    # SAME puts the one spare row and column of zeros at the far side.
    same = dataclasses.replace(layer, padding="SAME", bias=jnp.zeros(1))
    np.testing.assert_array_equal(same(image)[0, :, :, 0], [[-4, -4, 3], [-4, -4, 6], [7, 8, 9]])
    strided = dataclasses.replace(same, stride=2)
    np.testing.assert_array_equal(strided(image)[0, :, :, 0], [[-4, 3], [7, 9]])


def test_space_to_depth_reads_a_block_row_by_row():
    image = jnp.arange(8.0).reshape(1, 2, 4, 1)
    np.testing.assert_array_equal(space_to_depth(image, 2)[0, 0], [[0, 1, 4, 5], [2, 3, 6, 7]])


def test_four_frames_of_bytes_move_as_words_in_the_same_order():
    frames = jnp.asarray(np.random.default_rng(0).integers(0, 256, (2, 8, 12, 4)), jnp.uint8)
    moved = space_to_depth(frames, 4)
    assert moved.dtype == jnp.uint8
    np.testing.assert_array_equal(moved, space_to_depth(frames.astype(jnp.int32), 4))


@pytest.mark.parametrize(("image", "kernel", "outputs", "stride", "padding"), CASES)
def test_all_ways_equal_xla_in_value_and_gradient(image, kernel, outputs, stride, padding):
    rng = np.random.default_rng(0)
    inputs = image[-1]
    weight = rng.normal(size=(*kernel, inputs, outputs), scale=(kernel[0] * kernel[1] * inputs) ** -0.5)
    bias = rng.normal(size=outputs)
    x = rng.normal(size=(2, *image))
    cotangent = rng.normal(size=(2, *convolution_shape(weight, stride, padding, image)))

    @functools.partial(jax.jit, static_argnums=0)
    def value_and_gradients(implementation, weight, bias, x, cotangent):
        layer = Convolution(weight, bias, stride, padding, implementation)
        y, pullback = jax.vjp(lambda layer, x: layer(x), layer, x)
        gradient, x_gradient = pullback(cotangent)
        return y, gradient.weight, gradient.bias, x_gradient

    arrays = [jnp.asarray(array, jnp.float32) for array in (weight, bias, x, cotangent)]
    expected = value_and_gradients("xla", *arrays)
    for way in ("matmul", "winograd") if has_winograd(kernel, stride) else ("matmul",):
        for result, reference in zip(value_and_gradients(way, *arrays), expected, strict=True):
            np.testing.assert_allclose(result, reference, atol=1e-5 * float(jnp.abs(reference).max()), err_msg=way)


def has_winograd(kernel, stride):
    return all(-(-side // stride) in TRANSFORMS for side in kernel)


def convolution_shape(weight, stride, padding, image):
    return Convolution(jnp.asarray(weight), jnp.zeros(1), stride, padding).output_shape(*image[:2])


@pytest.mark.parametrize("channels", [3, 40], ids=["gathered", "by position"])
def test_both_forms_can_be_vmapped_and_differentiated_forwards(channels):
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.normal(size=(2, 1, 5, 5, channels)), jnp.float32)
    weight = jnp.asarray(rng.normal(size=(2, 3, 3, channels, 2)), jnp.float32)

    @jax.jit
    @jax.vmap
    def tangent(x, weight):
        return jax.jvp(lambda weight: convolve_by_matmul(x, weight, 1, "VALID"), (weight,), (weight,))[1]

    expected = jnp.stack([convolve_by_xla(x[i], weight[i], 1, "VALID") for i in range(2)])
    np.testing.assert_allclose(tangent(x, weight), expected, atol=1e-4)


@pytest.mark.parametrize("length", list(TRANSFORMS))
def test_two_outputs_from_one_product_more_than_the_kernel_is_long(length):
    # Lavin and Gray's identity in one dimension: y_r = Σ_i d_{r + i} g_i = Aᵀ[(G g) ⊙ (Bᵀ d)].
    transform = TRANSFORMS[length]
    tile, kernel = np.array([3.0, 5.0, 7.0, 2.0])[: length + 1], np.array([1.0, -2.0, 4.0])[:length]
    products = (transform.kernel @ kernel) * (transform.inputs @ tile)
    np.testing.assert_array_equal(transform.outputs @ products, np.correlate(tile, kernel, "valid"))


def test_winograd_is_vmapped_and_differentiated_twice_backwards():
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.normal(size=(2, 1, 5, 4, 3)), jnp.float32)
    weight = jnp.asarray(rng.normal(size=(2, 3, 3, 3, 2)), jnp.float32)

    def curvature(way):
        layer = Convolution(weight[0], jnp.zeros(2), implementation=way)

        def norm_of_gradient(weight, x):
            of = jax.grad(lambda w: jnp.sum(jnp.tanh(dataclasses.replace(layer, weight=w)(x))))(weight)
            return jnp.sum(of**2)

        return jax.jit(jax.vmap(jax.grad(norm_of_gradient, argnums=(0, 1))))(weight, x)

    for got, expected in zip(curvature("winograd"), curvature("xla"), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-4 * float(jnp.abs(expected).max()))


@pytest.mark.parametrize("way", ["winograd", "matmul", "xla"])
def test_bytes_are_pixels_up_to_1(way):
    layer = Convolution.glorot(3, 2, 3, key=jax.random.key(4), implementation=way)
    pixels = jnp.asarray(np.random.default_rng(2).integers(0, 256, (1, 4, 5, 3)), jnp.uint8)
    scaled = pixels / 255
    np.testing.assert_allclose(layer(pixels), layer(scaled), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer.halved(pixels), layer.halved(scaled), rtol=1e-5, atol=1e-6)
    of_bytes, of_floats = (jax.grad(lambda layer, x=x: jnp.sum(layer(x) ** 2))(layer) for x in (pixels, scaled))
    np.testing.assert_allclose(of_bytes.weight, of_floats.weight, rtol=1e-4, atol=1e-4)


def test_winograd_is_taken_for_many_channels_in_single_precision():
    def chosen(channels, kernel, stride=1, dtype=jnp.float32):
        layer = jax.eval_shape(lambda: Convolution.glorot(channels, 2, kernel, stride=stride, key=jax.random.key(0)))
        layer = dataclasses.replace(layer, weight=jax.ShapeDtypeStruct(layer.weight.shape, dtype))
        return layer._chosen(jax.ShapeDtypeStruct((1, 9, 9, channels), dtype))

    assert chosen(64, 3) == chosen(4, 8, stride=4) == chosen(32, 4, stride=2) == "winograd"
    assert chosen(4, 3) == chosen(64, 1) == chosen(64, 5) == chosen(64, 3, dtype=jnp.float64) == "matmul"


def test_the_backend_chooses_when_nobody_does(monkeypatch):
    layer = Convolution.glorot(4, 8, 3, key=jax.random.key(2))
    x = jnp.ones((1, 6, 6, 4))

    def operations(layer):
        return str(jax.make_jaxpr(lambda x: layer(x))(x))

    assert "conv_general_dilated" not in operations(layer)
    assert "conv_general_dilated" in operations(dataclasses.replace(layer, implementation="xla"))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert "conv_general_dilated" in operations(layer)
    assert "conv_general_dilated" not in operations(dataclasses.replace(layer, implementation="matmul"))


def test_glorot_limit_counts_the_receptive_field():
    layer = Convolution.glorot(4, 32, 8, stride=4, key=jax.random.key(3))
    limit = (6 / (64 * 36)) ** 0.5
    assert layer.weight.shape == (8, 8, 4, 32)
    assert 0.99 * limit < float(jnp.abs(layer.weight).max()) <= limit
    assert not layer.bias.any()


def test_mistakes_are_named():
    with pytest.raises(UserError, match="padding is 'same'"):
        Convolution.glorot(1, 1, 3, padding="same", key=jax.random.key(0))  # ty: ignore[invalid-argument-type]
    with pytest.raises(UserError, match="implementation is 'cuda'"):
        Convolution.glorot(1, 1, 3, implementation="cuda", key=jax.random.key(0))  # ty: ignore[invalid-argument-type]
    with pytest.raises(UserError, match="not 5 x 5 by 1"):
        Convolution.glorot(1, 1, 5, implementation="winograd", key=jax.random.key(0))
    with pytest.raises(UserError, match="side of 2 is smaller than the kernel of 3"):
        Convolution.glorot(1, 1, 3, padding="VALID", key=jax.random.key(0))(jnp.ones((1, 2, 5, 1)))
