from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.methods import BC, COG, SAC, Spec
from dr3.methods.crops import random_crops
from dr3.paper import cog

KEY = jax.random.key(3)
SMALL: dict[str, Any] = {"hidden": (5,), "policy_hidden": (5,), "channels": (2, 2), "batch_size": 8}


def test_a_crop_is_a_window_of_the_padded_picture():
    pictures = np.random.default_rng(0).integers(0, 256, (200, 3, 4, 2), np.uint8)
    moved = np.asarray(random_crops(jnp.asarray(pictures), 1, KEY))
    assert moved.dtype == np.uint8
    padded = np.pad(pictures, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
    places = np.zeros((3, 3), int)
    for before, after in zip(padded, moved, strict=True):
        found = [(i, j) for i in range(3) for j in range(3) if (before[i : i + 3, j : j + 4] == after).all()]
        places[found[0]] += 1
    assert places.sum() == 200
    assert places.min() > 5  # every place, some 22 times each


def test_an_update_moves_both_pictures_of_a_row_and_measuring_none(logged_pictures):
    method = COG(**SMALL)
    batch = Batch.of(logged_pictures)
    seen = method.cropped(batch, KEY)
    assert (seen.observations != batch.observations).any()
    assert (seen.next_observations != batch.next_observations).any()
    np.testing.assert_array_equal(seen.actions, batch.actions)
    assert dataclasses.replace(method, crop=0).cropped(batch, KEY) is batch
    # A row whose s' is its s is moved twice, either time to a place of its own.
    twice = method.cropped(batch._replace(next_observations=batch.observations), KEY)
    assert (twice.observations != twice.next_observations).any()


@pytest.mark.slow
def test_the_features_of_the_convolution_know_no_action(logged_pictures):
    inner, outer = (COG(**SMALL, feature_layer=layer) for layer in ("convolution", "penultimate"))
    batch = Batch.of(logged_pictures)
    learner = jax.jit(inner.init, static_argnums=0)(Spec.of(logged_pictures), KEY)

    @jax.jit
    def told(learner, batch):
        backups = [method.loss(learner.model, learner, batch, KEY)[1][0] for method in (inner, outer)]
        looked = inner.features(learner.model, batch.observations, 0 * batch.actions)
        return *backups, looked, jnp.stack(learner.model.critics.states(batch.next_observations))

    flat, penultimate, looked, following = told(learner, batch)
    assert flat.phi.shape == (2, len(batch.rewards), 3 * 3 * 2)
    assert penultimate.phi.shape == (2, len(batch.rewards), 5)
    np.testing.assert_allclose(flat.phi, looked, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(flat.phi_next, following, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(flat.values, penultimate.values, rtol=1e-5)


def test_which_observations_are_taken(logged_continuous, logged_pictures):
    with pytest.raises(UserError, match=r"crop is for pictures, .* give --crop 0"):
        SAC(crop=2).prepare(logged_continuous)
    for method in (BC(), SAC(crop=2)):
        assert method.prepare(logged_pictures) is logged_pictures
    flat = dataclasses.replace(
        logged_pictures, observations=np.zeros((48, 6, 6)), next_observations=np.zeros((48, 6, 6))
    )
    with pytest.raises(UserError, match=r"vectors or pictures .* have the shape \(6, 6\)"):
        BC().prepare(flat)
    with pytest.raises(UserError, match="every width in channels must be at least 1"):
        BC(channels=(0,)).prepare(logged_pictures)


def test_the_preset_has_the_releases_numbers():
    method, regularizer = cog(dr3=True)
    assert regularizer is not None
    assert regularizer.coefficient == 0.001
    assert (method.alpha, method.sampled_actions, method.warm_start, method.batch_size) == (1.0, 1, 10_000, 256)
    assert (method.hidden, method.channels, method.crop) == ((1024, 512, 256), (16, 16, 16), 4)
    assert (method.learning_rate, method.policy_learning_rate, method.entropy_backup) == (3e-4, 1e-4, False)
    # But for how dense layers start, this is what `dr3 train cog` trains.
    assert dataclasses.replace(method, tiny_start=False) == COG()
    assert cog(dr3=False) == (method, None)


def test_a_critic_that_was_learned_is_not_cloned_over(logged_pictures):
    """From another run's critic there is no warm start; a tiny start is none, and has one."""
    method, spec = COG(**SMALL, warm_start=7), Spec.of(logged_pictures)
    fresh = dataclasses.replace(method, tiny_start=True).init(spec, KEY)
    assert fresh.updates == 0
    started = method.start_from(fresh, fresh.model)
    assert started.updates == 7
    assert started.target is fresh.model.critics


def test_vectors_are_refused_with_what_to_use_instead(logged_continuous):
    with pytest.raises(UserError, match=r"cog learns from pictures.*use continuous-cql"):
        COG(**SMALL, crop=0).prepare(logged_continuous)
