from __future__ import annotations

import numpy as np
import pytest

from dr3.instruments import co_adaptation_ratio, last_layer_grams, stability


def spectrum(phi, phi_next, discount, **actions):
    grams = last_layer_grams(phi, phi_next, discount, **actions)
    return stability(grams.same, grams.K)


def test_ratio_of_proposition_3_2_by_hand():
    phi, following = [[1.0, 0], [0, 2]], [[1.0, 1], [0, 1]]  # norms 1 + 4, products 1 and 2
    assert co_adaptation_ratio(phi, following, 0.5) == pytest.approx(0.3)
    assert co_adaptation_ratio(phi, following, [0.5, 0]) == pytest.approx(0.1)
    assert co_adaptation_ratio(np.zeros((2, 2)), following, 0.5) == 0


def test_one_feature_by_hand():
    # λ = φ² - γ φ φ' summed over rows = (1 - 0.9 * 2) + (4 - 0.9 * 2): stable although the first row alone is not.
    found = spectrum([[1.0], [2.0]], [[2.0], [1.0]], 0.9)
    assert found.eigenvalues == pytest.approx([1.4])
    assert found.condition_one
    assert found.largest_step == pytest.approx(2 / 1.4)
    assert found.contracts(1.4)
    assert not found.contracts(1.5)
    assert found.margin == pytest.approx(1)


def test_spectrum_is_that_of_the_parameters_space():
    random = np.random.default_rng(0)
    phi, following = random.normal(size=(2, 6, 4))
    found = spectrum(phi, following, 0.9).eigenvalues
    direct = np.linalg.eigvals(phi.T @ (phi - 0.9 * following))
    assert np.sort_complex(found) == pytest.approx(np.sort_complex(direct))


def test_rotation_limits_the_step():
    # G = [[1, -2], [2, 1]] has λ = 1 ± 2i: |1 - ηλ| < 1 iff η < 2 / 5.
    found = spectrum(np.eye(2), np.eye(2) - np.array([[1.0, -2], [2, 1]]), 1.0)
    assert found.largest_step == pytest.approx(0.4)
    assert found.spectral_radius(0.399) < 1 < found.spectral_radius(0.401)


def test_a_ratio_above_one_forces_an_unstable_direction():
    phi = np.random.default_rng(0).normal(size=(5, 3))
    found = spectrum(phi, 1.2 * phi, 0.9)
    assert co_adaptation_ratio(phi, 1.2 * phi, 0.9) > 1
    assert found.smallest_real_part < 0
    assert not found.condition_one
    assert found.largest_step == 0


def test_rows_of_different_actions_are_orthogonal():
    phi = [[1.0], [2.0]]
    found = spectrum(phi, [[3.0], [1.0]], 0.5, actions=[0, 1], next_actions=[1, 1])
    # Weights (w0, w1): G = [[1, -0.5 * 3], [0, 4 - 0.5 * 2]].
    assert np.sort(found.eigenvalues.real) == pytest.approx([1, 3])


def test_no_features_at_all():
    found = spectrum(np.zeros((3, 2)), np.zeros((3, 2)), 0.9)
    assert len(found.eigenvalues) == 0
    assert found.margin == 0


def test_no_eigenvalue_has_no_radius():
    nothing = stability(np.zeros((2, 2)), np.zeros((2, 2)))
    assert nothing.spectral_radius(0.1) == 0.0


def test_whole_numbers_are_numbers():
    assert stability([[2, 0], [0, 1]], [[2, 0], [0, 1]]).largest_step == pytest.approx(1.0)


def test_what_is_not_finite_is_not_stable():
    broken = stability(np.full((2, 2), np.nan), np.eye(2))
    assert not broken.condition_one
    assert np.isnan(broken.margin)
    assert not broken.contracts(0.1)
