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
        DQN(hidden=(6, 5), redo_every=2),
        IQL(hidden=(6, 5), redo_every=2),
        SAC(hidden=(6, 5), policy_hidden=(4,), redo_every=2),
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
