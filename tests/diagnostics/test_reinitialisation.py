from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from dr3.diagnostics.reinitialisation import LayerTest, reinitialise, replace_layer
from dr3.errors import UserError


def test_one_layer_is_replaced_and_no_other(runs):
    initial, last = runs.critics(0)[0], runs.critics(60)[0]
    changed = replace_layer(last, "dense2", initial)
    for name, layer in changed.layers().items():
        source = initial if name == "dense2" else last
        same = jax.tree.map(lambda a, b: bool((a == b).all()), layer, source.layers()[name])
        assert all(jax.tree.leaves(same)), name


def test_unmodified_returns_are_those_of_training(runs):
    found = reinitialise(runs)
    assert found.layers == ("dense1", "dense2", "head")
    assert found.returns.shape == (2, 3, 3)
    np.testing.assert_allclose(found.unmodified, runs.evaluations["evaluation/return"][:, 1:])


def test_all_layers_back_is_the_initial_policy(runs):
    at_start = reinitialise(runs, steps=[0])
    np.testing.assert_allclose(at_start.returns, at_start.unmodified[:, None, :].repeat(3, axis=1))


def test_re_randomisation_is_another_test(runs):
    found = reinitialise(runs, randomise=True, steps=[0])
    assert found.test == "re-randomisation"
    assert (found.returns != found.unmodified[:, None, :]).any()  # a fresh draw is not the initial value


def layer_test(returns, unmodified):
    return LayerTest("re-initialisation", ("a", "b"), np.array([1]), np.array(returns), np.array(unmodified))


def test_normalised_performance():
    assert layer_test([[[1.0], [2.0]]], [[4.0]]).normalised[0, :, 0] == pytest.approx([0.25, 0.5])
    # Where returns can be negative, both sides are counted from the lowest: here -20.
    assert layer_test([[[-20.0], [-5.0]]], [[10.0]]).normalised[0, :, 0] == pytest.approx([0, 0.5])
    nothing = layer_test([[[1.0], [1.0]], [[1.0], [1.0]]], [[0.0], [5.0]])
    assert np.isnan(nothing.normalised[0]).all()


def test_a_run_that_was_never_tried_needs_a_world(runs):
    runs.config = dataclasses.replace(runs.config, evaluation=None)
    with pytest.raises(UserError, match="--env"):
        reinitialise(runs)
    assert reinitialise(runs, env="grid16smoothobs", steps=[60]).steps.tolist() == [60]


def test_a_run_with_its_initial_weights_alone_is_refused(own_runs):
    own_runs.folder.checkpoints.rewind(0)
    with pytest.raises(UserError, match="no checkpoint after the initial one"):
        reinitialise(own_runs)
