"""Settings that are there to keep a critic from falling apart."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.hyperparameters import to_json
from dr3.methods import CQL, DQN, REM, SAC, Spec
from dr3.methods.hl_gauss import gaussian_histogram
from dr3.networks import trunk_for
from dr3.networks.hypersphere import SphereLinear
from dr3.networks.layer_norm import LayerNorm

KEY = jax.random.key(0)


def backup_of(method, data):
    table = method.prepare(data)
    batch = Batch.of(table)
    learner = method.init(Spec.of(table), KEY)
    return method.loss(method.model(learner), learner, batch, KEY)[1][0], batch


# --- Clipped targets ---


@pytest.mark.parametrize("method", [DQN(discount=0.5), CQL(discount=0.5), SAC(discount=0.5)])
def test_targets_are_clipped_to_what_rewards_allow(method, logged, logged_continuous):
    data = logged_continuous if isinstance(method, SAC) else logged
    # Rewards between -1 and 2, and a discount of a half: returns between -2 and 4. Q is far beyond that.
    data = dataclasses.replace(data, rewards=np.linspace(-1, 2, len(data), dtype=np.float32))
    far = dataclasses.replace(data, observations=data.observations + 1, next_observations=data.next_observations + 1e4)
    plain, batch = backup_of(method, far)
    clipped, _ = backup_of(dataclasses.replace(method, target_clip=True), far)
    np.testing.assert_allclose(clipped.targets, np.clip(plain.targets, -2, 4))
    assert np.abs(plain.targets).max() > 4
    np.testing.assert_array_equal(clipped.rewards, batch.rewards)


def test_a_reward_at_the_end_is_a_return(logged):
    data = dataclasses.replace(logged, rewards=np.full(len(logged), 1, np.float32))
    assert data.terminals.any()
    bounds = DQN(discount=0.9, target_clip=True).prepare(data).value_bounds
    assert bounds is not None
    np.testing.assert_allclose(bounds, np.tile([1, 10], (len(data), 1)), rtol=1e-6)


def test_clipping_needs_a_discount_below_1(logged):
    with pytest.raises(UserError, match="below 1"):
        DQN(discount=1.0, target_clip=True).prepare(logged)


# --- LayerNorm ---


def test_layer_norm_is_in_every_hidden_layer_and_draws_nothing(logged):
    spec = Spec.of(logged)
    plain, normed = (DQN(hidden=(5, 4), layer_norm=on).init(spec, KEY).critic for on in (False, True))
    assert plain.trunk.norms == ()
    np.testing.assert_array_equal(plain.trunk.stack[1].weight, normed.trunk.stack[1].weight)
    x = jnp.asarray(logged.observations, jnp.float32)
    for layer in normed.trunk.stack:
        out = np.asarray(layer(x), np.float64)
        standard = (out - out.mean(-1, keepdims=True)) / np.sqrt(out.var(-1, keepdims=True) + 1e-6)
        x = jnp.asarray(np.maximum(standard, 0), jnp.float32)
    np.testing.assert_allclose(normed.features(jnp.asarray(logged.observations)), x, rtol=1e-4, atol=1e-5)


def test_layer_norm_by_hand():
    # Mean 2 and variance 1: (-1, 1), times 2 and 1, plus 0 and 5.
    found = LayerNorm(gain=jnp.array([1.0, 0.0]), shift=jnp.array([0.0, 5.0]))(jnp.array([[1.0, 3.0]]))
    np.testing.assert_allclose(found, [[-2, 6]], rtol=1e-5)


def test_layer_norm_after_a_convolution_is_over_the_filters_of_each_place():
    trunk: Any = trunk_for("minatar", (4, 4, 2), (5,), key=KEY, layer_norm=True)
    x = jax.random.uniform(KEY, (3, 4, 4, 2))

    def normed(out):
        out = np.asarray(out, np.float64)
        return np.maximum((out - out.mean(-1, keepdims=True)) / np.sqrt(out.var(-1, keepdims=True) + 1e-6), 0)

    seen = normed(trunk.convolutions[0](x)).reshape(3, -1)
    expected = normed(seen @ np.asarray(trunk.dense.weight) + np.asarray(trunk.dense.bias))
    np.testing.assert_allclose(trunk(x), expected, rtol=1e-4, atol=1e-5)


def test_layer_norm_is_in_every_critic_of_an_ensemble_and_not_in_the_policy(logged_continuous):
    model: Any = SAC(hidden=(5, 4), policy_hidden=(3,), layer_norm=True).init(Spec.of(logged_continuous), KEY).model
    assert [[len(norm.gain) for norm in critic.norms] for critic in model.critics.members] == [[5, 4], [5, 4]]
    assert "LayerNorm" not in repr(model.policy)


def test_what_is_off_is_not_recorded():
    record: Any = to_json(DQN())
    assert not {"layer_norm", "target_clip"} & set(record)
    assert (to_json(DQN(layer_norm=True)) or {})["layer_norm"] is True


# --- A histogram of the value ---


def test_the_histogram_of_a_target_by_hand():
    # Four bins of width 1 and σ = 0.75, the target in the middle of the second: shares of the normal distribution.
    edges = np.arange(5.0)
    below = norm.cdf((edges - 1.5) / 0.75)
    expected = np.diff(below) / (below[-1] - below[0])
    found = gaussian_histogram(jnp.array([1.5, -1e6]), jnp.asarray(edges, jnp.float32))
    np.testing.assert_allclose(found[0], expected, rtol=1e-4)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)


def test_hl_gauss_is_the_cross_entropy_and_its_values_are_means(logged):
    method = DQN(hidden=(4,), hl_gauss=5, support=(-1.0, 4.0))
    table = method.prepare(logged)
    learner: Any = method.init(Spec.of(table), KEY)
    batch = Batch.of(table)
    loss, (backup, info) = method.loss(learner.critic, learner, batch, KEY)
    logits = np.asarray(learner.critic.logits(backup.phi), np.float64)[np.arange(len(batch.rewards)), batch.actions]
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(backup.values, shares @ np.array([-0.5, 0.5, 1.5, 2.5, 3.5]), rtol=1e-4)
    wanted = np.asarray(gaussian_histogram(backup.targets, jnp.linspace(-1, 4, 6)))
    assert loss == pytest.approx(-(wanted * np.log(shares)).sum(-1).mean(), rel=1e-4)
    assert info["losses/td"] == loss


@pytest.mark.parametrize("method", [DQN, CQL])
def test_both_losses_learn(method, logged):
    extras: Any = ({"hl_gauss": 11, "support": (-2.0, 5.0)}, {"quantiles": 3})
    for extra in extras:
        chosen = method(hidden=(4,), learning_rate=0.01, **extra)
        learner, batch = chosen.init(Spec.of(logged), KEY), Batch.of(chosen.prepare(logged))
        update = jax.jit(chosen.update, static_argnames="regularizer")
        losses = []
        for _ in range(8):
            learner, loss = update(learner, batch, KEY, None)
            losses.append(float(loss))
        assert losses[-1] < losses[0]


def test_what_histograms_need(logged):
    with pytest.raises(UserError, match="--support"):
        DQN(hl_gauss=11).prepare(logged)
    refused: Any = ({"hl_gauss": 5, "support": (1.0, 0.0)}, {"support": (0.0, 1.0)}, {"hl_gauss": 5, "quantiles": 2})
    for wrong in refused:
        with pytest.raises(UserError):
            DQN(**wrong)
    with pytest.raises(UserError, match="heads"):
        REM(quantiles=5)


# --- On the sphere ---


def test_a_layer_on_the_sphere_by_hand():
    # x = (4), with the constant 3 beside it of length 5; weights (0, 2) and (1, 1), whose lengths do not matter.
    layer = SphereLinear(jnp.array([[0.0, 1.0], [2.0, 1.0]]), jnp.array([0.0, 1.0]), first=True)
    np.testing.assert_allclose(layer(jnp.array([[4.0]])), [[0.6, 2 * 1.4 / np.sqrt(2)]], rtol=1e-6)
    np.testing.assert_allclose(
        layer(jnp.array([[4.0]])), dataclasses.replace(layer, weight=7 * layer.weight)(jnp.array([[4.0]])), rtol=1e-6
    )


def test_features_on_the_sphere_have_length_1(logged):
    critic: Any = DQN(hidden=(5, 4), hyperspherical=True).init(Spec.of(logged), KEY).critic
    phi = critic.features(jnp.asarray(logged.observations))
    lengths = np.linalg.norm(phi, axis=-1)
    np.testing.assert_allclose(lengths[lengths > 0], 1, rtol=1e-5)
    assert (lengths > 0).any()
    with pytest.raises(UserError, match="unit length"):
        DQN(hyperspherical=True, layer_norm=True)
