"""The n x n form against numbers by hand, and against the d x d computation that it stands for."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.methods import DQN, Spec
from dr3.methods.base import gradients
from dr3.notation import spell
from dr3.regularizers import DR3, LabelNoiseDR3
from dr3.regularizers.parse import parse_regularizer

RAW = LabelNoiseDR3(normalise=False, step_size=0.1)


def backup(phi, phi_next, *, bootstraps=None, discounts=None, actions=None, next_actions=None) -> Backup:
    """A Backup of which only the features, the masks and the actions matter."""
    phi, phi_next = jnp.asarray(phi), jnp.asarray(phi_next)
    nothing = jnp.zeros(phi.shape[-2])
    bootstraps = nothing + 1 if bootstraps is None else jnp.asarray(bootstraps)
    return Backup(
        phi=phi,
        phi_next=phi_next,
        values=nothing,
        next_values=nothing,
        targets=nothing,
        bootstraps=bootstraps,
        discounts=0.5 * bootstraps if discounts is None else jnp.asarray(discounts),
        actions=nothing.astype(int) if actions is None else jnp.asarray(actions),
        next_actions=nothing.astype(int) if next_actions is None else jnp.asarray(next_actions),
        same_output=nothing,
    )


# --- By hand ---

# One row: g·g = 4, g'·g = 2, K = 4 - 0.5·2 = 3, so S = 0.01 / (1 - 0.7²), and Δ = (g·g) S (g'·g).
ONE = backup([[2.0, 0.0]], [[1.0, 1.0]])
# g'·g = 12: K = 4 - 6 = -2, and noise grows by 1.2 a step.
AWAY = backup([[2.0, 0.0]], [[6.0, 1.0]])


@pytest.mark.parametrize(
    ("regularizer", "penalty"),
    [
        (RAW, 4 * 0.01 / 0.51 * 2),
        (dataclasses.replace(RAW, solver="steps", steps=1), 4 * 0.01 * 2),
        (dataclasses.replace(RAW, solver="steps", steps=2), 4 * 0.01 * (1 + 0.49) * 2),
        (LabelNoiseDR3(), 2.0),  # of one row Σ* is a multiple of ggᵀ, and scaled to gᵀΣ*g = g·g it leaves g·g'
        (LabelNoiseDR3(solver="steps"), 2.0),
    ],
)
def test_one_row_by_hand(regularizer, penalty):
    assert regularizer(ONE) == pytest.approx(penalty, rel=1e-5)


def test_where_noise_does_not_settle_a_few_steps_are_taken_and_it_is_said():
    nothing: Any = None  # features are enough for the last layer
    penalty, notes = dataclasses.replace(RAW, steps=2).weigh(AWAY, nothing)
    assert penalty == pytest.approx(4 * 0.01 * (1 + 1.44) * 12, rel=1e-5)
    assert notes["contracts"] == 0
    assert RAW.weigh(ONE, nothing)[1]["contracts"] == 1
    assert dataclasses.replace(RAW, solver="steps").weigh(AWAY, nothing)[1] == {}


def test_a_terminal_has_no_pair_but_makes_noise():
    # Orthogonal rows decouple. The second ends: K = diag(3, 1), and only the first counts: half of its Δ.
    both = backup([[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [5.0, 5.0]], bootstraps=[1.0, 0.0])
    assert RAW(both) == pytest.approx(4 * 0.01 / 0.51 * 2 / 2, rel=1e-5)
    # What is stored after it does not matter, …
    planted = both._replace(phi_next=both.phi_next.at[1].set(1e6))
    assert RAW(planted) == RAW(both)
    # … unless one asks for it: g'·g = 5 against the first row does not meet the second's own gradient, 5 does.
    unmasked = dataclasses.replace(RAW, mask_terminals=False)
    assert unmasked(both) == pytest.approx((4 * 0.01 / 0.51 * 2 + 1 * 0.01 / (1 - 0.9**2) * 5) / 2, rel=1e-5)


def test_per_action_rows_of_the_last_layer_do_not_meet():
    # Two equal features under different actions; a' of the first is its own action, that of the second is not.
    phi, phi_next = [[2.0, 0.0], [2.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]
    apart = backup(phi, phi_next, actions=[0, 1], next_actions=[0, 2])
    exact = dataclasses.replace(RAW, per_action=True)
    assert exact(apart) == pytest.approx(4 * 0.01 / 0.51 * 2 / 2, rel=1e-5)
    assert exact(backup(phi, phi_next)) == pytest.approx(float(RAW(backup(phi, phi_next))), rel=1e-5)


def test_continuous_actions_have_one_output_and_nothing_to_tell_apart():
    phi, phi_next, action = [[2.0, 0.0], [2.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]], [[0.1, 0.2], [0.3, 0.4]]
    continuous = backup(phi, phi_next, actions=action, next_actions=action)
    assert dataclasses.replace(RAW, per_action=True)(continuous) == RAW(continuous)


def test_repeated_rows_settle():
    twice = backup([[2.0, 0.0], [2.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]])
    nothing: Any = None
    penalty, notes = RAW.weigh(twice, nothing)
    assert notes["contracts"] == 1
    # Along g both act as one row with twice the pull and twice the noise: Σ* = 2 · 0.01 / (1 - (1 - 0.6)²) ggᵀ
    assert penalty == pytest.approx(4 * 2 * 0.01 / (1 - 0.4**2) * 2, rel=1e-4)


def test_with_nothing_bootstrapped_and_small_steps_it_is_dr3():
    """Then Σ* = (η/2) times the projector onto the gradients, which leaves every g_i as it is."""
    phi, phi_next = np.random.default_rng(0).normal(size=(2, 4, 6)).astype(np.float32)
    rows = backup(phi, phi_next, discounts=np.zeros(4, np.float32))
    products = float(DR3()(rows))
    assert LabelNoiseDR3(step_size=1e-5)(rows) == pytest.approx(products, rel=1e-3)
    assert LabelNoiseDR3(step_size=1e-5, normalise=False)(rows) == pytest.approx(0.5e-5 * products, rel=1e-3)


def test_larger_features_scale_it_as_they_scale_dr3():
    phi, phi_next = np.random.default_rng(1).normal(size=(2, 5, 7)).astype(np.float32)
    penalty = float(LabelNoiseDR3()(backup(phi, phi_next)))
    assert LabelNoiseDR3()(backup(30 * phi, 30 * phi_next)) == pytest.approx(900 * penalty, rel=1e-3)


def test_features_that_are_all_zero_cost_nothing():
    nothing = backup(np.zeros((3, 2), np.float32), np.zeros((3, 2), np.float32))
    value, slope = jax.value_and_grad(lambda phi: LabelNoiseDR3()(nothing._replace(phi=phi)))(nothing.phi)
    assert value == 0
    np.testing.assert_array_equal(slope, np.zeros((3, 2)))


def test_noise_from_some_rows_and_products_of_all():
    """Σ* of the first row alone, 0.01 / 0.51 ggᵀ; the second row's products are with it: (g_2·g) S (g'_2·g)."""
    rows = backup([[2.0, 0.0], [1.0, 3.0]], [[1.0, 1.0], [4.0, 0.0]])
    S = 0.01 / 0.51
    assert dataclasses.replace(RAW, rows=1)(rows) == pytest.approx((4 * S * 2 + 2 * S * 8) / 2, rel=1e-5)


def test_the_rows_that_make_noise_are_spread_over_the_batch():
    """Two of four: the first and the third. Whatever changes places with its like changes nothing."""
    phi, phi_next = np.random.default_rng(3).normal(size=(2, 4, 6)).astype(np.float32)

    def penalty(order):
        return float(LabelNoiseDR3(rows=2)(backup(phi[order], phi_next[order])))

    assert penalty([2, 3, 0, 1]) == pytest.approx(penalty([0, 1, 2, 3]), rel=1e-5)
    assert penalty([1, 0, 3, 2]) != pytest.approx(penalty([0, 1, 2, 3]), rel=1e-2)


def test_an_ensemble_is_averaged_after_the_product():
    phi, phi_next = np.random.default_rng(2).normal(size=(2, 2, 3, 5)).astype(np.float32)
    both = LabelNoiseDR3()(backup(phi, phi_next))
    each = [float(LabelNoiseDR3()(backup(phi[k], phi_next[k]))) for k in range(2)]
    assert both == pytest.approx(np.mean(each), rel=1e-5)


# --- Against d x d ---


class Small(NamedTuple):
    method: DQN
    critic: Any
    batch: Batch
    made: Backup


@pytest.fixture
def small(logged):
    """A network with two layers in double precision, six rows, one of them a terminal."""
    with jax.enable_x64(True):
        method = DQN(hidden=(5,), discount=0.5)
        data = logged.rows(np.arange(3, 9))
        batch = Batch.of(data)
        learner = method.init(Spec.of(data), jax.random.key(1))
        learner = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), learner._replace(optimizer=()))
        yield Small(method, learner.critic, batch, method.loss(learner.critic, learner, batch, jax.random.key(0))[1][0])


def dense_covariance(J, J_next, discounts, eta, steps):
    """Σ ← (I - ηG) Σ (I - ηG)ᵀ + η² JᵀJ from 0, as the paper writes it: (d, d)."""
    step = np.eye(J.shape[1]) - eta * J.T @ (J - discounts[:, None] * J_next)
    sigma = np.zeros_like(step)
    for _ in range(steps):
        sigma = step @ sigma @ step.T + eta**2 * J.T @ J
    return sigma


@pytest.mark.parametrize(("solver", "steps", "enough"), [("steps", 20, 20), ("fixed_point", 20, 60_000)])
@pytest.mark.parametrize("scope", ["last_layer", "all"])
def test_value_and_gradient_are_those_of_the_dense_computation(small, scope, solver, steps, enough):
    method, critic, batch, made = small
    flat, unravel = ravel_pytree(critic)

    def rows_of(theta):
        """J and J' (n, d): for the last layer features, for all parameters the derivative by the flat vector."""
        critic = unravel(theta)
        if scope == "last_layer":
            return critic.features(batch.observations), critic.features(batch.next_observations)

        def q(theta, observations, actions):
            return method.values(unravel(theta), observations, actions)

        here = jax.jacobian(q)(theta, batch.observations, made.actions)
        return here, jax.jacobian(q)(theta, batch.next_observations, made.next_actions)

    J, J_next = (np.asarray(side) for side in rows_of(flat))
    eta = 0.1 / np.linalg.norm(J @ J.T)
    sigma = dense_covariance(J, J_next, np.asarray(made.discounts), eta, enough)

    def dense(theta):
        here, following = rows_of(theta)
        return jnp.mean(made.bootstraps * jnp.einsum("id,de,ie->i", here, sigma, following))

    regularizer = LabelNoiseDR3(scope=scope, solver=solver, steps=steps, step_size=float(eta), normalise=False)

    def in_samples(theta):
        critic = unravel(theta)
        sides = critic.features(batch.observations), critic.features(batch.next_observations)
        now = made._replace(phi=sides[0], phi_next=sides[1])
        view: Any = SimpleNamespace(gradients=lambda: gradients(method, critic, batch, now))
        return regularizer.weigh(now, view)

    (value, notes), slope = jax.value_and_grad(in_samples, has_aux=True)(flat)
    expected, expected_slope = jax.value_and_grad(dense)(flat)
    assert value.dtype == jnp.float64
    assert notes.get("contracts", 1) == 1
    assert value == pytest.approx(float(expected), rel=1e-8)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-7, atol=1e-9 * np.abs(expected_slope).max())
    assert np.abs(expected_slope).max() > 0


# --- As a word ---


def test_words():
    assert parse_regularizer("label-noise:0.01") == LabelNoiseDR3(0.01)
    word = "label-noise:0.01:scope=all:solver=steps:step_size=0.001"
    assert parse_regularizer(word) == LabelNoiseDR3(0.01, scope="all", solver="steps", step_size=0.001)
    assert spell(parse_regularizer(word)) == word


def test_all_parameters_need_gradients():
    with pytest.raises(UserError, match="scope=all needs gradients"):
        LabelNoiseDR3(scope="all")(ONE)
