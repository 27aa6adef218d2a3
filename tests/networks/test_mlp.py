from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from dr3.networks import MLP, DiscreteCritic, Linear

LAYERS = (
    Linear(jnp.array([[1.0, -1.0], [2.0, 0.0]]), jnp.array([0.0, 1.0])),
    Linear(jnp.array([[1.0], [-3.0]]), jnp.array([0.5])),
)


def test_forward_by_hand_with_a_relu_after_each_layer():
    mlp = MLP(LAYERS, 1)
    # (1, 1): (3, 0) -> 3.5. (-1, 0): (-1, 2) -> ReLU (0, 2) -> -5.5 -> ReLU 0. The features are never negative.
    np.testing.assert_array_equal(mlp(jnp.array([[1.0, 1.0], [-1.0, 0.0]])), [[3.5], [0.0]])


def test_bytes_of_an_image_are_pixels_and_those_of_a_vector_are_numbers():
    same = MLP((Linear(jnp.eye(2), jnp.zeros(2)),), 2)
    np.testing.assert_allclose(same(jnp.array([[[[255], [51]]]], jnp.uint8)), [[1.0, 0.2]], rtol=1e-6)
    np.testing.assert_array_equal(same(jnp.array([[255, 51]], jnp.uint8)), [[255.0, 51.0]])


def test_critic_reads_values_from_features_by_hand():
    critic = DiscreteCritic(MLP(LAYERS, 1), Linear(jnp.array([[2.0, -1.0, 0.0]]), jnp.array([0.0, 1.0, 7.0])))
    phi = critic.features(jnp.array([[1.0, 1.0], [-1.0, 0.0]]))
    np.testing.assert_array_equal(phi, [[3.5], [0.0]])
    np.testing.assert_array_equal(critic.values(phi), [[7.0, -2.5, 7.0], [0.0, 1.0, 7.0]])


def test_shapes_and_names():
    mlp = MLP.create((2, 3), (5, 4), key=jax.random.key(0))
    assert mlp.width == 4
    assert mlp(jnp.zeros((7, 2, 3))).shape == (7, 4)
    assert mlp(jnp.zeros((7, 2, 3), jnp.uint8)).dtype == jnp.float32
    critic = DiscreteCritic.create(mlp, 3, key=jax.random.key(1))
    assert list(critic.layers()) == ["dense1", "dense2", "head"]
    assert [layer.weight.shape for layer in critic.layers().values()] == [(6, 5), (5, 4), (4, 3)]
    assert critic.values(critic.features(jnp.zeros((7, 2, 3)))).shape == (7, 3)


def test_layers_are_drawn_apart_and_from_their_key_alone():
    one, same, other = (MLP.create((4,), (4, 4), key=jax.random.key(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.stack[0].weight, same.stack[0].weight)
    assert not np.isin(one.stack[0].weight, one.stack[1].weight).any()
    assert not np.isin(one.stack[0].weight, other.stack[0].weight).any()


def test_without_hidden_layers_the_features_are_the_observation():
    mlp = MLP.create((2, 2), (), key=jax.random.key(0))
    assert mlp.width == 4
    np.testing.assert_array_equal(mlp(jnp.arange(8).reshape(2, 2, 2)), np.arange(8).reshape(2, 4))
