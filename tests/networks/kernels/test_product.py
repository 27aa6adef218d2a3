from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.networks.kernels.product import COLLIDING, FEW_ROWS, product

COLLIDES = COLLIDING // 4  # float32 columns


def both(rows: tuple[int, ...], inputs: int, outputs: int = 3):
    """The value and both gradients of a curved function of x W, by `product` and by XLA's own."""
    x = jax.random.normal(jax.random.key(0), (*rows, inputs))
    weight = jax.random.normal(jax.random.key(1), (inputs, outputs)) / inputs**0.5

    def answers(multiply):
        def loss(x, weight):
            return jnp.sum(jnp.sin(multiply(x, weight)))

        return multiply(x, weight), *jax.grad(loss, argnums=(0, 1))(x, weight)

    return answers(product), answers(jnp.matmul)


@pytest.mark.parametrize("inputs", [6, COLLIDES])
@pytest.mark.parametrize("rows", [(2, 3), (FEW_ROWS + 1,)])
def test_value_and_gradients_are_those_of_a_plain_product(rows, inputs):
    for ours, plain in zip(*both(rows, inputs), strict=True):
        assert ours.shape == plain.shape
        np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-5)


def test_it_maps_over_members_and_differentiates_twice():
    x = jax.random.normal(jax.random.key(0), (2, 4, COLLIDES))
    weight = jax.random.normal(jax.random.key(1), (2, COLLIDES, 3)) / COLLIDES**0.5

    def slope_size(multiply):
        def slope(x, weight):
            return jax.grad(lambda x: jnp.sum(jnp.sin(multiply(x, weight))))(x)

        return jax.vmap(jax.grad(lambda weight, x: jnp.sum(slope(x, weight) ** 2)))(weight, x)

    np.testing.assert_allclose(slope_size(product), slope_size(jnp.matmul), rtol=1e-4, atol=1e-5)


def test_in_double_precision_it_differentiates_forwards():
    with jax.enable_x64(True):
        x, weight = jnp.ones((2, COLLIDES)), jnp.ones((COLLIDES, 3))
        _, change = jax.jvp(lambda weight: product(x, weight), (weight,), (weight,))
        np.testing.assert_array_equal(change, jnp.full((2, 3), float(COLLIDES)))
