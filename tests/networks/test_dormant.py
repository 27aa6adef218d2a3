"""Units that have gone silent."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.methods import DQN, IQL, SAC, ContinuousIQL, ContinuousMethod, Spec
from dr3.networks import DiscreteCritic, trunk_for
from dr3.networks.dormant import dormant_units, recycle
from dr3.optimization import Adam, cleared

KEY = jax.random.key(0)


def test_dormant_by_hand():
    # Sizes 0.1, 1 and 1.9 of mean 1; at a threshold of 0.1 the first is dormant, at 0.05 none.
    outputs = jnp.array([[0.2, 1.0, 1.8], [0.0, -1.0, 2.0]])
    np.testing.assert_array_equal(dormant_units(outputs, 0.1), [True, False, False])
    np.testing.assert_array_equal(dormant_units(outputs, 0.05), [False, False, False])


def test_a_silent_unit_reads_anew_and_is_not_read():
    def drawn(key) -> Any:
        return DiscreteCritic.create(trunk_for("mlp", (2,), (3, 4), key=key), 2, key=key)

    old, new = map(drawn, jax.random.split(KEY))
    outputs = {"dense1": jnp.array([[0.0, 1.0, 1.0]]), "dense2": jnp.array([[1.0, 1.0, 0.0, 1.0]])}
    mended, changed = recycle(old, new, outputs, 0.1)
    first, second = (np.array(layer.weight) for layer in old.trunk.stack)
    first[:, 0] = new.trunk.stack[0].weight[:, 0]
    second[:, 2] = new.trunk.stack[1].weight[:, 2]
    second[0] = 0
    head = np.array(old.head.weight)
    head[2] = 0
    np.testing.assert_array_equal(mended.trunk.stack[0].weight, first)
    np.testing.assert_array_equal(mended.trunk.stack[1].weight, second)
    np.testing.assert_array_equal(mended.head.weight, head)
    assert mended.trunk.stack[0].bias[0] == new.trunk.stack[0].bias[0]
    assert changed.trunk.stack[1].weight.sum() == 4 + 3 - 1
    assert not changed.head.bias.any()


def test_the_norm_of_a_silent_unit_is_drawn_anew_and_only_that():
    critic: Any = DiscreteCritic.create(trunk_for("mlp", (2,), (3, 4), key=KEY, layer_norm=True), 2, key=KEY)
    used = jax.tree.map(lambda leaf: leaf + 7.0, critic)
    outputs = {"dense1": jnp.array([[0.0, 1.0, 1.0]]), "dense2": jnp.array([[1.0, 1.0, 0.0, 1.0]])}
    mended, changed = recycle(used, critic, outputs, 0.1)
    for norm, moved, expected in zip(mended.trunk.norms, changed.trunk.norms, ([0, 7, 7], [7, 7, 0, 7]), strict=True):
        for part in (norm.gain, norm.shift):
            np.testing.assert_array_equal(part, expected)
        np.testing.assert_array_equal(moved.shift, np.array(expected) == 0)


def test_moments_are_cleared_where_something_changed_by_hand():
    # Two steps along gradients of 1 and 2: m = 0.9 · 0.1 + 0.1 · 2 = 0.29, v = 0.999 · 0.001 + 0.001 · 4 = 0.004999.
    adam, weights = Adam(0.1), {"w": jnp.zeros(2)}
    memory: Any = adam.init(weights)
    for slope in (1.0, 2.0):
        weights, memory = adam.step(weights, {"w": jnp.full(2, slope)}, memory)
    after: Any = cleared(memory, {"w": jnp.array([True, False])})
    np.testing.assert_allclose(after[0].mu["w"], [0, 0.29], rtol=1e-5)
    np.testing.assert_allclose(after[0].nu["w"], [0, 0.004999], rtol=1e-4)
    assert after[0].count == 2


def test_filters_are_read_at_every_place():
    critic: Any = DiscreteCritic.create(trunk_for("minatar", (5, 5, 2), (6,), key=KEY), 2, key=KEY)
    outputs = critic.trunk.outputs(jnp.ones((3, 5, 5, 2)))
    assert {name: value.shape for name, value in outputs.items()} == {"conv1": (3, 3, 3, 16), "dense": (3, 6)}
    np.testing.assert_allclose(outputs["dense"], critic.features(jnp.ones((3, 5, 5, 2))), rtol=1e-5)
    one = jnp.ones((1, 3, 3, 16)).at[..., 5].set(0)
    mended, _ = recycle(critic, critic, {"conv1": one}, 0.1)
    rows = np.asarray(mended.trunk.dense.weight).reshape(9, 16, 6)
    assert (rows[:, 5] == 0).all()
    assert (np.delete(rows, 5, axis=1) != 0).all()


@pytest.mark.parametrize(
    "method",
    [
        DQN(hidden=(6, 5), redo_every=2, layer_norm=True),
        IQL(hidden=(6, 5), redo_every=2),
        SAC(hidden=(6, 5), policy_hidden=(4,), redo_every=2, layer_norm=True),
        ContinuousIQL(hidden=(6, 5), policy_hidden=(4,), redo_every=2),
    ],
    ids=lambda method: method.name,
)
def test_moments_of_what_changed_are_cleared(method, logged, logged_continuous):
    data = logged_continuous if isinstance(method, ContinuousMethod) else logged
    batch, learner = Batch.of(data), method.init(Spec.of(data), KEY)
    learner, _ = method.update(learner, batch, KEY, None)
    mended: Any = method.recycle(learner, batch, jax.random.key(1))
    before: Any = learner
    for moment in ("mu", "nu"):
        old, new = (jax.tree.leaves(getattr(one.optimizer[0], moment)) for one in (before, mended))
        kept = [np.asarray(b)[np.asarray(a) != np.asarray(b)] for a, b in zip(old, new, strict=True)]
        assert all((values == 0).all() for values in kept)
        if isinstance(method, ContinuousIQL):  # V is no critic, and is left alone
            values = (getattr(one.optimizer[0], moment).value for one in (before, mended))
            jax.tree.map(np.testing.assert_array_equal, *values)
    assert jax.tree.structure(mended) == jax.tree.structure(before)
