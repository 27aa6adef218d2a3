from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from dr3.instruments import cosine, dot_product, norm

# Products 11, -2, 0; norms 5, 1, 0 and √5, 2, 3; the second row is a terminal.
PHI = np.array([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0]])
PHI_NEXT = np.array([[1.0, 2.0], [0.0, -2.0], [3.0, 0.0]])
ALL, SOME, NONE = np.ones(3), np.array([1.0, 0.0, 1.0]), np.zeros(3)


@pytest.fixture(params=[np.asarray, jnp.asarray], ids=["numpy", "jax"])
def array(request):
    return request.param


def test_dot_product_by_hand(array):
    assert dot_product(array(PHI), array(PHI_NEXT), array(ALL)) == pytest.approx((11 - 2 + 0) / 3)


def test_only_pairs_that_bootstrap_count(array):
    assert dot_product(array(PHI), array(PHI_NEXT), array(SOME)) == pytest.approx((11 + 0) / 2)
    assert dot_product(array(PHI), array(PHI_NEXT), array(SOME.astype(bool))) == pytest.approx(11 / 2)
    assert dot_product(array(PHI), array(PHI_NEXT), array(NONE)) == 0


def test_cosine_by_hand_and_features_that_are_all_zero_are_orthogonal(array):
    expected = (11 / (5 * 5**0.5) - 1 + 0) / 3
    assert cosine(array(PHI), array(PHI_NEXT), array(ALL)) == pytest.approx(expected, rel=1e-6)


def test_cosine_does_not_see_lengths(array):
    long = cosine(array(1e6 * PHI), array(1e-6 * PHI_NEXT), array(SOME))
    assert long == pytest.approx(float(cosine(array(PHI), array(PHI_NEXT), array(SOME))), rel=1e-5)


def test_norms_by_hand(array):
    np.testing.assert_allclose(norm(array(PHI)), [5, 1, 0])
    np.testing.assert_allclose(norm(array(PHI_NEXT)), [5**0.5, 2, 3], rtol=1e-6)


def test_critics_of_an_ensemble_are_averaged_after_the_product(array):
    phi, phi_next = array(np.stack([PHI, 3 * PHI])), array(np.stack([PHI_NEXT, PHI_NEXT]))
    assert dot_product(phi, phi_next, array(SOME)) == pytest.approx((11 / 2 + 33 / 2) / 2)
    assert norm(phi).shape == (2, 3)
