from __future__ import annotations

import numpy as np
import pytest

import dr3
from dr3.errors import UserError

linen = pytest.importorskip("flax.linen", reason="Flax is not installed: make test TORCH=1 installs it")


def test_a_module_with_its_variables(logged):
    import jax

    class Trunk(linen.Module):
        @linen.compact
        def __call__(self, x):
            return linen.relu(linen.Dense(5)(x))

    class Q(linen.Module):
        @linen.compact
        def __call__(self, x):
            return linen.Dense(3, name="head")(Trunk(name="trunk")(x))

    critic = Q()
    variables = critic.init(jax.random.key(0), logged.observations)
    dense, head = variables["params"]["trunk"]["Dense_0"], variables["params"]["head"]
    expected = dr3.diagnose(
        lambda s, a: np.maximum(s @ np.asarray(dense["kernel"]) + np.asarray(dense["bias"]), 0),
        logged,
        last_layer=(np.asarray(head["kernel"]).T, np.asarray(head["bias"])),
    )
    found = dr3.diagnose((critic, variables), logged, layer="trunk", last_layer="head")
    for name, values in expected.measurements.columns.items():
        assert found.measurements.columns[name] == pytest.approx(values, rel=1e-4, abs=1e-6), name
    with pytest.raises(UserError, match="layer="):
        dr3.diagnose((critic, variables), logged)
    with pytest.raises(UserError, match="'nose'"):
        dr3.diagnose((critic, variables), logged, layer="nose")
