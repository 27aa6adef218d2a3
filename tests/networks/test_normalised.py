from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.methods import DQN, Spec
from dr3.networks import MLP, Linear, Normalised, trunk_for
from dr3.regularizers import DR3


def test_unit_length_by_hand():
    identity = MLP((Linear(jnp.eye(2), jnp.zeros(2)),), 2)
    phi = Normalised(identity, 2)(jnp.array([[3.0, 4.0], [0.0, 2.0], [-1.0, -1.0]]))
    # ReLU leaves nothing of the last row: it stays 0.
    np.testing.assert_allclose(phi, [[0.6, 0.8], [0.0, 1.0], [0.0, 0.0]], rtol=1e-6)


def test_dead_features_pass_a_finite_gradient():
    dead = MLP((Linear(jnp.eye(2), -jnp.ones(2)),), 2)
    slope = jax.grad(lambda trunk: Normalised(trunk, 2)(jnp.zeros((1, 2))).sum())(dead)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))


def test_it_is_the_same_network_below():
    plain = trunk_for("auto", (4,), (6,), key=jax.random.key(0))
    unit = trunk_for("auto", (4,), (6,), key=jax.random.key(0), normalise=True)
    assert unit.width == plain.width == 6
    assert unit.layers().keys() == plain.layers().keys()
    observations = jax.random.normal(jax.random.key(1), (5, 4))
    phi = plain(observations)
    np.testing.assert_allclose(unit(observations), phi / jnp.linalg.norm(phi, axis=-1, keepdims=True), rtol=1e-5)


def test_every_method_can_have_it_and_then_dr3_is_a_mean_cosine(logged):
    method = DQN(hidden=(6,), normalise_features=True)
    learner, batch = method.init(Spec.of(logged), jax.random.key(0)), Batch.of(logged)
    _, (backup, _) = method.loss(learner.critic, learner, batch, jax.random.key(0))
    lengths = jnp.linalg.norm(backup.phi, axis=-1)
    assert set(np.round(np.asarray(lengths), 5)) <= {0.0, 1.0}
    assert float(lengths.max()) == pytest.approx(1, rel=1e-5)
    assert 0 < float(DR3()(backup)) <= 1
