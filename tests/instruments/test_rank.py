from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pytest

from dr3.instruments import srank


def with_singular_values(values, rows, columns, seed=0):
    random = np.random.default_rng(seed)
    left = np.linalg.qr(random.normal(size=(rows, len(values))))[0]
    right = np.linalg.qr(random.normal(size=(columns, len(values))))[0]
    return left * np.asarray(values, float) @ right.T


def by_definition(phi, delta):
    singular = np.linalg.svd(np.asarray(phi, np.float64), compute_uv=False)
    held = np.cumsum(singular) / singular.sum()
    return next(k for k, share in enumerate(held, start=1) if share >= 1 - delta - 1e-9)


@pytest.mark.parametrize(
    ("singular", "delta", "rank"),
    [
        ([4, 3, 2, 1], 0.01, 4),  # shares .4 .7 .9 1
        ([4, 3, 2, 1], 0.25, 3),
        ([4, 3, 2, 1], 0.35, 2),
        ([100, 0.5, 0.4], 0.01, 1),  # singular values are not squared: 100 / 100.9 is above 0.99 …
        ([100, 2], 0.01, 2),  # … and 100 / 102 is not, though 10000 / 10004 would be
    ],
)
def test_known_singular_values(singular, delta, rank):
    for shape in ((9, 6), (6, 9)):
        assert srank(with_singular_values(singular, *shape), delta=delta) == rank


@pytest.mark.parametrize("seed", range(5))
def test_a_share_of_exactly_one_minus_delta_is_enough(seed):
    assert srank(np.diag([99.0, 1.0])) == 1
    assert srank(with_singular_values([99, 1], 7, 5, seed)) == 1
    assert srank(np.diag([98.9, 1.1])) == 2


@pytest.mark.parametrize("shape", [(40, 12), (12, 40), (20, 20), (1, 8), (8, 1)])
def test_as_a_singular_value_decomposition_says(shape):
    random = np.random.default_rng(0)
    for delta in (0.01, 0.1, 0.5):
        phi = np.maximum(random.normal(size=shape) * np.geomspace(1, 1e-3, shape[1]), 0).astype(np.float32)
        assert srank(phi, delta=delta) == by_definition(phi, delta)


def test_low_rank_is_seen_in_float32():
    random = np.random.default_rng(1)
    phi = (random.normal(size=(60, 3)) @ random.normal(size=(3, 30))).astype(np.float32)
    assert srank(phi) == by_definition(phi, 0.01) == 3


def test_numpy_and_jax_give_the_same():
    phi = np.random.default_rng(2).normal(size=(10, 6)).astype(np.float32)
    assert srank(phi) == srank(jnp.asarray(phi))


def test_nothing_has_rank_zero_and_what_is_not_finite_has_none():
    assert srank(np.zeros((4, 3))) == 0
    assert math.isnan(srank(np.array([[1.0, np.inf], [0.0, 1.0]])))
