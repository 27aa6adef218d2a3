from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from dr3.networks import convolutional
from dr3.networks.convolutional import Convolutional, Stage
from dr3.networks.kernels.blocks import ONE_CORE, blocks_for, in_blocks

CACHED = 2**16


def test_blocks_are_the_fewest_that_stay_in_the_cache_and_divide_the_rows():
    assert blocks_for(256, CACHED // 256, CACHED) == 1
    assert blocks_for(256, CACHED // 256 + 1, CACHED) == 2
    assert blocks_for(256, CACHED // 64, CACHED) == 4
    assert blocks_for(48, CACHED // 20, CACHED) == 3
    assert blocks_for(257, CACHED // 256, CACHED) == 1  # a prime number of rows
    assert blocks_for(16, CACHED, CACHED) == 1


def test_every_row_comes_back_in_its_place():
    rows = jnp.arange(24.0).reshape(6, 2, 2)
    np.testing.assert_array_equal(in_blocks(lambda x: x.sum(axis=2), rows, 3), rows.sum(axis=2))


def test_on_one_core_images_go_in_blocks_and_nothing_else_changes(monkeypatch):
    monkeypatch.setattr(convolutional, "CACHED", 8 * 6 * 6 * 2 * 4)  # 8 images of the first layer's outputs
    network = Convolutional.build(
        (6, 6, 3), [Stage(2, 3, 1), Stage(3, 3, 2)], key=jax.random.key(0), padding="SAME", units=4
    )
    images = jax.random.randint(jax.random.key(1), (24, 6, 6, 3), 0, 256).astype(jnp.uint8)

    @jax.jit
    def answers(network):
        return jax.value_and_grad(lambda network: jnp.sum(jnp.sin(network(images))))(network)

    whole = answers(network)
    assert "while" not in answers.lower(network).as_text()
    with ONE_CORE(True):
        parts = answers(network)
        assert "while" in answers.lower(network).as_text()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), whole, parts)
