from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.errors import UserError
from dr3.networks import ActorCritic, Convolution, ImageEncoder
from dr3.networks.convolution import max_pool
from dr3.networks.initialisation import tiny_dense

KEY = jax.random.key(0)


def test_cogs_encoder_makes_2304_numbers_of_a_picture():
    encoder = jax.eval_shape(lambda key: ImageEncoder.create((48, 48, 3), (16, 16, 16), key=key), KEY)
    picture = jax.ShapeDtypeStruct((5, 48, 48, 3), jnp.uint8)
    seen = jax.eval_shape(lambda encoder, picture: encoder(picture), encoder, picture)
    assert (seen.shape, seen.dtype) == ((5, encoder.width), jnp.float32)
    assert encoder.width == 2_304
    assert list(encoder.layers()) == ["conv1", "conv2", "conv3"]


@pytest.mark.parametrize("hidden", [(64,), (64, 64)])
def test_no_two_layers_begin_alike(hidden):
    """Of independent uniform draws no 64 correlate by more than a half."""
    widths: Any = {"hidden": hidden, "policy_hidden": hidden, "channels": (8, 8)}
    network = ActorCritic.create((8, 8, 3), 2, **widths, low=-1.0, high=1.0, key=KEY)
    drawn = [leaf.ravel()[:64] for leaf in jax.tree.leaves(network) if leaf.size >= 64 and jnp.ptp(leaf) > 0]
    among = np.abs(np.corrcoef(drawn)) - np.eye(len(drawn))
    assert len(drawn) >= 8
    assert among.max() < 0.6


def test_by_hand():
    """Kernels that see their own pixel only: halving takes the largest, the second layer doubles; bytes are scaled."""
    same = jnp.zeros((3, 3, 1, 1)).at[1, 1].set(1.0)
    encoder = ImageEncoder((Convolution(same, jnp.zeros(1)), Convolution(2 * same, jnp.array([-1.0]))), 2)
    picture = np.array([[0, 51, 255, 102], [0, 0, 0, 0]], np.uint8).reshape(1, 2, 4, 1)
    np.testing.assert_allclose(encoder(jnp.asarray(picture)), [[0.0, 1.0]], atol=1e-6)  # 2 · 51/255 - 1 < 0
    np.testing.assert_allclose(encoder(jnp.asarray(picture / 255.0, jnp.float32)), [[0.0, 1.0]], atol=1e-6)


def test_pooling_and_its_gradient_are_those_of_a_window():
    x = jax.random.normal(KEY, (2, 5, 6, 3))

    def window(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def slope(pool):
        return jax.grad(lambda x: jnp.sum(jnp.sin(pool(x))))(x)

    np.testing.assert_array_equal(max_pool(x), window(x))
    np.testing.assert_allclose(slope(max_pool), slope(window), rtol=1e-6)


@pytest.mark.parametrize(("height", "width", "padding"), [(6, 6, "SAME"), (7, 4, "SAME"), (7, 6, "VALID")])
def test_halving_in_one_product_is_convolving_and_pooling(height, width, padding):
    layer = Convolution.glorot(2, 3, 3, padding=padding, implementation="matmul", key=KEY)
    x = jax.random.normal(KEY, (2, height, width, 2))

    @jax.jit
    def both(layer, x):
        ways = (lambda layer, x: layer.halved(x)), (lambda layer, x: max_pool(layer(x)))
        return [
            jax.value_and_grad(lambda *a, way=way: jnp.sum(jnp.sin(way(*a))), argnums=(0, 1))(layer, x) for way in ways
        ]

    together, apart = both(layer, x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), together, apart)
    assert np.abs(together[1][0].weight).max() > 0.1


def test_a_picture_that_is_too_small_is_refused():
    with pytest.raises(UserError, match="2 x 8 cannot be halved 2 times"):
        ImageEncoder.create((2, 8, 3), (4, 4, 4), key=KEY)


def test_critics_and_policy_look_with_encoders_of_their_own_and_can_start_tiny():
    def build(key):
        agent = ActorCritic.create(
            (4, 4, 3), 2, hidden=(5, 4), policy_hidden=(6, 5, 4, 3), low=-1.0, high=1.0, key=key, channels=(2, 3)
        )
        return agent, tiny_dense(agent, key=key)

    agent, tiny = jax.jit(build)(KEY)
    first, second = (critic.encoder.convolutions[0].weight for critic in agent.critics.members)
    assert (first != second).all()
    assert (first != agent.policy.trunk.encoder.convolutions[0].weight).all()
    assert list(agent.critics.layers()) == ["conv1", "conv2", "dense1", "dense2", "head"]
    assert list(agent.layers()) == ["conv1", "conv2", "dense1", "dense2", "dense3", "dense4", "head"]
    largest = {
        name: max(np.abs(leaf).max() for leaf in jax.tree.leaves(of)) for name, of in tiny.critics.layers().items()
    }
    assert max(largest["dense1"], largest["dense2"], largest["head"]) <= 1e-4
    assert min(largest["conv1"], largest["conv2"]) > 0.1
    *early, last = tiny.policy.trunk.dense.stack
    assert max(np.abs(layer.weight).max() for layer in early) <= 1e-4
    np.testing.assert_array_equal(last.weight, agent.policy.trunk.dense.stack[-1].weight)
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(jax.eval_shape(build, KEY)))


def test_a_strided_encoder_sees_patches_then_halves():
    encoder = jax.eval_shape(lambda key: ImageEncoder.create((48, 48, 3), (16, 32), key=key, strided=True), KEY)
    picture = jax.ShapeDtypeStruct((5, 48, 48, 3), jnp.uint8)
    seen = jax.eval_shape(lambda encoder, picture: encoder(picture), encoder, picture)
    assert (seen.shape, seen.dtype) == ((5, encoder.width), jnp.float32)
    assert encoder.width == 6 * 6 * 32
    with pytest.raises(UserError, match="cannot be halved 3 times"):
        ImageEncoder.create((4, 4, 3), (16, 32), key=KEY, strided=True)


def test_a_strided_encoder_by_hand():
    """The first layer adds up patches of 4 x 4; the second takes the middle of each 3 x 3, two apart."""
    encoder = ImageEncoder.create((16, 16, 1), (1, 1), key=KEY, strided=True)
    middle = jnp.zeros((3, 3, 1, 1)).at[1, 1].set(1.0)
    weights = lambda encoder: [layer.weight for layer in encoder.convolutions]  # noqa: E731
    encoder = eqx.tree_at(weights, encoder, [jnp.ones((4, 4, 1, 1)), middle])
    picture = jnp.arange(256, dtype=jnp.float32).reshape(1, 16, 16, 1)
    patches = picture.reshape(4, 4, 4, 4).sum(axis=(1, 3))
    # Zeros that "SAME" adds stand at the far side where they are odd: the middle is that of patches 1 and 3.
    np.testing.assert_allclose(encoder(picture)[0], patches[1::2, 1::2].ravel(), rtol=1e-6)


def test_critics_share_a_strided_encoder_and_its_gradient_is_the_sum_of_theirs():
    widths: Any = {"hidden": (6,), "policy_hidden": (6,), "channels": (2, 3)}
    network = ActorCritic.create((8, 8, 3), 2, **widths, low=-1.0, high=1.0, key=KEY, strided=True)
    assert all(critic.encoder is None for critic in network.critics.members)
    assert set(network.critics.layers()) == {"conv1", "conv2", "dense1", "head"}
    assert set(network.layers()) == {"conv1", "conv2", "dense1", "head"}
    pictures, actions = jax.random.uniform(KEY, (4, 8, 8, 3)), jnp.zeros((4, 2))

    def of(number):
        def value(encoder):
            critics = dataclasses.replace(network.critics, encoder=encoder)
            values = critics.q(critics.states(pictures), actions)
            return values.sum() if number is None else values[number].sum()

        return jax.grad(value)(network.critics.encoder).convolutions[0].weight

    np.testing.assert_allclose(of(None), of(0) + of(1), rtol=1e-5, atol=1e-6)
    assert float(jnp.abs(of(0)).max()) > 0
