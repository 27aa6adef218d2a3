"""The ranks beside srank: one spectrum, six numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dr3.instruments import effective_rank, numerical_rank, pca_rank, srank, stable_rank, threshold_rank

ALL = (srank, pca_rank, effective_rank, stable_rank, threshold_rank, numerical_rank)


def diagonal(*values):
    """A (9, 6) matrix with these singular values."""
    matrix = np.zeros((9, 6))
    np.fill_diagonal(matrix, values)
    return matrix


def test_one_spectrum_by_hand():
    phi = diagonal(4, 2, 1, 1, 0, 0)
    assert srank(phi) == 4
    assert pca_rank(phi, delta=0.1) == 2  # squares 16 4 1 1: shares .73 .91 .95 1
    assert srank(phi, delta=0.1) == 4  # shares .5 .75 .875 1
    # Shares 1/2 1/4 1/8 1/8 have the entropy (1/2 + 1/2 + 3/4) log 2.
    assert effective_rank(phi) == pytest.approx(2**1.75)
    assert stable_rank(phi) == pytest.approx(22 / 16)
    assert threshold_rank(phi, threshold=0.5) == 2  # divided by √9: 1.33 .67 .33 .33
    assert numerical_rank(phi) == 4


def test_orthogonal_features_have_full_rank_by_every_definition():
    for rank in ALL:
        assert rank(np.eye(5)) == pytest.approx(5), rank.__name__


@pytest.mark.parametrize("rank", ALL)
def test_zero_and_broken_features(rank):
    assert rank(np.zeros((4, 3))) == 0
    assert math.isnan(rank([[1.0, np.nan]]))


def test_only_the_threshold_rank_sees_the_scale():
    phi = np.random.default_rng(0).normal(size=(20, 7)) @ np.diag([1, 1, 0.3, 0.1, 0.03, 0.01, 0.003])
    for rank in ALL:
        same = rank(100 * phi) == pytest.approx(rank(phi))
        assert same == (rank is not threshold_rank), rank.__name__


def test_numerical_rank_does_not_count_float32_noise():
    random = np.random.default_rng(0)
    phi = (random.normal(size=(40, 2)) @ random.normal(size=(2, 30))).astype(np.float32)
    assert numerical_rank(phi) == 2
    assert numerical_rank(phi, epsilon=1e-14) > 2
