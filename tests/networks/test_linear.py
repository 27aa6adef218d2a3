from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.networks import Linear


def test_forward_by_hand_for_any_leading_axes():
    layer = Linear(jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), jnp.array([0.5, 0.0, -1.0]))
    np.testing.assert_array_equal(layer(jnp.array([1.0, -1.0])), [-2.5, -3.0, -4.0])
    np.testing.assert_array_equal(layer(jnp.array([[[1.0, -1.0], [0.0, 0.0]]])), [[[-2.5, -3, -4], [0.5, 0, -1]]])


@pytest.mark.parametrize(
    ("create", "weight_limit", "bias_limit"),
    [(Linear.fan_in, 100**-0.5, 100**-0.5), (Linear.glorot, (6 / 150) ** 0.5, 0.0)],
)
def test_initial_weights_fill_their_range(create, weight_limit, bias_limit):
    layer = create(100, 50, key=jax.random.key(0))
    assert layer.weight.shape == (100, 50)
    assert layer.bias.shape == (50,)
    # 5,000 uniform draws come within 1 % of both ends and have a mean of 0 within 4 standard errors.
    assert -weight_limit <= layer.weight.min() < -0.99 * weight_limit
    assert 0.99 * weight_limit < layer.weight.max() <= weight_limit
    assert abs(layer.weight.mean()) < 4 * weight_limit / (3 * 5000) ** 0.5
    assert jnp.abs(layer.bias).max() <= bias_limit


def test_weights_and_biases_are_drawn_apart():
    layer = Linear.fan_in(1, 6, key=jax.random.key(0))
    assert not np.isin(layer.bias, layer.weight).any()
