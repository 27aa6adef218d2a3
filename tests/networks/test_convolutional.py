from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.errors import UserError
from dr3.networks.convolution import Convolution
from dr3.networks.convolutional import Convolutional, Stage, minatar, nature
from dr3.networks.linear import Linear


def test_hand_computed():
    # One 2 x 2 kernel of ones on a 2 x 2 image sums its pixels; the dense layer doubles and negates that sum.
    network = Convolutional(
        (Convolution(jnp.ones((2, 2, 1, 1)), jnp.array([1.0]), padding="VALID"),),
        Linear(jnp.array([[2.0, -2.0]]), jnp.array([0.5, 0.5])),
        2,
    )
    pixels = jnp.array([[51, 102], [0, 102]], jnp.uint8).reshape(1, 2, 2, 1)
    np.testing.assert_allclose(network(pixels), [[2 * (1.0 + 1.0) + 0.5, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(network(pixels == 102), [[2 * (2.0 + 1.0) + 0.5, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(network((pixels == 102).astype(jnp.float32)), [[6.5, 0.0]], rtol=1e-6)


@pytest.mark.parametrize(("padding", "sides"), [("SAME", (21, 11, 11)), ("VALID", (20, 9, 7))])
def test_nature_sizes(padding, sides):
    network = jax.eval_shape(lambda: nature((84, 84, 4), key=jax.random.key(0), padding=padding))
    side = 84
    for layer, expected in zip(network.convolutions, sides, strict=True):
        side, _, filters = layer.output_shape(side, side)
        assert side == expected
    assert network.dense.weight.shape == (side * side * filters, 512)
    assert network.width == 512
    features = jax.eval_shape(lambda network, x: network(x), network, jax.ShapeDtypeStruct((3, 84, 84, 4), jnp.uint8))
    assert (features.shape, features.dtype) == ((3, 512), jnp.float32)


def test_minatar_features():
    network = minatar((10, 10, 4), key=jax.random.key(0))
    features = network(jax.random.bernoulli(jax.random.key(1), 0.3, (3, 10, 10, 4)))
    assert features.shape == (3, network.width) == (3, 128)
    assert network.dense.weight.shape == (8 * 8 * 16, 128)
    assert float(features.min()) == 0.0
    assert float(features.max()) > 0.0


def test_layers_are_named_in_forward_order():
    network = jax.eval_shape(lambda: nature((84, 84, 4), key=jax.random.key(0)))
    layers = network.layers()
    assert list(layers) == ["conv1", "conv2", "conv3", "dense"]
    assert layers["conv2"] is network.convolutions[1]
    assert layers["dense"] is network.dense


def test_every_layer_starts_from_its_own_key():
    network = Convolutional.build((6, 6, 2), [Stage(2, 3, 1)] * 2, key=jax.random.key(0), padding="SAME", units=4)
    first, second = network.convolutions
    assert (first.weight != second.weight).all()


def test_images_too_small_for_the_kernels_are_refused():
    with pytest.raises(UserError, match="smaller than the kernel"):
        nature((20, 20, 4), key=jax.random.key(0), padding="VALID")
