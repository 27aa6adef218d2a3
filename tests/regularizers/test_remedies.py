"""BEER, terms on weights, CHAIN, and sums of terms."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.hyperparameters import from_json, to_json
from dr3.methods import DQN, Spec, objective
from dr3.notation import spell
from dr3.optimization import Adam
from dr3.regularizers import (
    BEER,
    DR3,
    L2,
    REGULARIZERS,
    Chain,
    L2Init,
    Memory,
    Remembering,
    Sum,
)
from dr3.regularizers.parse import parse_regularizer
from dr3.training import train
from dr3.training.loop import advance, begin, draw_rows, stream


def backup(phi, phi_next, rewards, readout, discount=0.5, bootstraps=None, same=None) -> Backup:
    phi = jnp.asarray(phi, jnp.float32)
    ones = jnp.ones(len(phi))
    follows = ones if bootstraps is None else jnp.asarray(bootstraps, jnp.float32)
    return Backup(
        phi=phi,
        phi_next=jnp.asarray(phi_next, jnp.float32),
        values=ones,
        next_values=ones,
        targets=ones,
        bootstraps=follows,
        discounts=discount * follows,
        actions=ones.astype(int),
        next_actions=ones.astype(int),
        same_output=ones if same is None else jnp.asarray(same, jnp.float32),
        rewards=jnp.asarray(rewards, jnp.float32),
        readout=jnp.asarray(readout, jnp.float32),
    )


# --- BEER ---

# φ = (3, 4), φ' = (2, 0), γ = ½: cos = 6 / 10. The bound with r = 4, ‖w‖ = 1: (25 + 1 - 16) / (2 · ½ · 10) = 1.
# With r = 5: (25 + 1 - 25) / 10 = 0.1, so that the penalty is 0.5.
PHI, PHI_NEXT, W = [3.0, 4.0], [2.0, 0.0], [0.6, 0.8]


@pytest.mark.parametrize(("reward", "penalty"), [(0.0, 0.0), (4.0, 0.0), (5.0, 0.5), (-5.0, 0.5)])
def test_beer_by_hand(reward, penalty):
    assert BEER()(backup([PHI], [PHI_NEXT], [reward], [W])) == pytest.approx(penalty, abs=1e-6)


def test_beer_is_the_mean_over_rows_without_terminals_and_says_where_it_acts():
    rows = backup([PHI] * 4, [PHI_NEXT] * 4, [5.0, 5.0, 0.0, 4.5], [W] * 4, bootstraps=[1, 0, 1, 1])
    # Of the rows that bootstrap: r = 5 is 0.5 over its bound, r = 0 has the bound 2.6, r = 4.5 has 0.575.
    penalty, notes = BEER().weigh(rows, None)
    assert penalty == pytest.approx((0.5 + 0.025) / 4, abs=1e-6)
    assert notes["can_act"] == pytest.approx(2 / 3)
    assert notes["acts"] == pytest.approx(2 / 3)
    same = backup([PHI] * 2, [PHI_NEXT] * 2, [5.0, 5.0], [W] * 2, same=[1.0, 0.0])
    assert BEER(per_action=True)(same) == pytest.approx(0.25, abs=1e-6)


def test_beer_never_acts_without_a_reward():
    phi, phi_next, w = np.random.default_rng(0).normal(size=(3, 200, 3))
    phi_next[:100] = phi[:100] / 0.5  # φ = γφ': the bound is 1 itself
    penalty, notes = BEER().weigh(backup(phi, phi_next, np.zeros(200), w), None)
    assert penalty == pytest.approx(0, abs=1e-7)
    assert notes["can_act"] == 0


def test_beer_bound_is_a_constant_and_features_of_zeros_have_a_gradient():
    def of(phi):
        return BEER()(backup(phi, [PHI_NEXT] * 2, [5.0, 5.0], [W] * 2))

    slope = jax.grad(of)(jnp.asarray([PHI, [0.0, 0.0]]))
    # d cos / dφ alone: (φ̂' - cos φ̂) / ‖φ‖, over two rows.
    expected = (np.array([1.0, 0.0]) - 0.6 * np.array([0.6, 0.8])) / 5 / 2
    np.testing.assert_allclose(slope[0], expected, rtol=1e-5)
    np.testing.assert_array_equal(slope[1], 0)


def test_beer_needs_rewards():
    with pytest.raises(UserError, match="rewards"):
        BEER()(backup([PHI], [PHI_NEXT], [0.0], [W])._replace(rewards=None))


def test_the_readout_of_a_method_is_the_row_of_its_action(logged):
    method, batch = DQN(hidden=(4,)), Batch.of(logged.rows(np.arange(6)))
    learner = method.init(Spec.of(logged), jax.random.key(0))
    made = method.loss(learner.critic, learner, batch, jax.random.key(0))[1][0]
    np.testing.assert_array_equal(made.readout, learner.critic.head.weight.T[batch.actions])
    np.testing.assert_array_equal(made.rewards, batch.rewards)


# --- Weights, churn ---


def test_terms_on_weights_by_hand(logged):
    method, batch, key = DQN(hidden=(3,)), Batch.of(logged.rows(np.arange(6))), jax.random.key(0)
    learner: Any = method.init(Spec.of(logged), key)
    squares = sum(float((leaf**2).sum()) for leaf in jax.tree.leaves(learner.critic))
    (_, (_, info)) = objective(method, L2(), learner.critic, learner, batch, key)
    assert info["losses/l2"] == pytest.approx(squares, rel=1e-5)
    moved = jax.tree.map(lambda leaf: leaf + 2.0, learner.critic)
    count = sum(leaf.size for leaf in jax.tree.leaves(moved))
    term = Remembering(L2Init(), Memory(initial=learner.critic))
    assert objective(method, term, moved, learner, batch, key)[1][1]["losses/l2_init"] == pytest.approx(4 * count)
    # The same bias for every action, 2 higher than it was: Q is 2 higher everywhere.
    higher = dataclasses.replace(learner.critic.head, bias=learner.critic.head.bias + 2.0)
    now = dataclasses.replace(learner.critic, head=higher)
    term = Remembering(Chain(), Memory(previous=learner.critic), batch)
    assert objective(method, term, now, learner, batch, key)[1][1]["losses/chain"] == pytest.approx(4, rel=1e-5)


def test_what_training_keeps_is_asked_for_in_one_sentence(logged):
    method, batch, key = DQN(hidden=(3,)), Batch.of(logged.rows(np.arange(6))), jax.random.key(0)
    learner = method.init(Spec.of(logged), key)
    with pytest.raises(UserError, match=r"dr3\.train"):
        objective(method, L2Init(), learner.critic, learner, batch, key)


# --- Sums ---


def test_a_sum_by_hand():
    rows = backup([PHI], [PHI_NEXT], [5.0], [W])
    both: Any = parse_regularizer("dr3:0.5+beer:0.1")
    assert both == Sum(terms=(DR3(0.5), BEER(0.1)))
    assert both(rows) == pytest.approx(0.5 * 6 + 0.1 * 0.5)
    assert both.weigh(rows, None)[1]["beer_acts"] == 1
    assert from_json(REGULARIZERS, to_json(both)) == both
    assert spell(dataclasses.replace(both, coefficient=2.0)) == "dr3:1+beer:0.2"
    assert parse_regularizer("dr3:1e+1+beer") == Sum(terms=(DR3(10.0), BEER()))


@pytest.mark.parametrize("word", ["dr3+none", "dr3+dr3:0.1", "dr3+nothing", "dr3:0.1+beer:x"])
def test_what_is_no_sum(word):
    with pytest.raises(UserError):
        parse_regularizer(word)


# --- Through training ---


@pytest.mark.slow
def test_chain_sees_the_critic_before_the_last_update_and_the_next_rows(logged):
    method, term, seed, key = DQN(hidden=(4,), batch_size=4, target_period=50), Chain(3.0), np.uint32(1), stream(1, 2)
    table = Batch.of(logged)
    progress = begin(method, seed, Spec.of(logged), None, term)
    learner: Any = method.init(Spec.of(logged), stream(1, 0))
    before = learner.critic
    for step in range(3):
        rows, others = (table.take(draw_rows(1, one, 4, len(logged))) for one in (step, step + 1))
        kept = Remembering(term, Memory(previous=before), others)
        before, learner = learner.critic, objective_step(method, kept, learner, rows, jax.random.fold_in(key, step))
    traced = jax.tree.map(jnp.asarray, (method, term, seed))
    found = advance(*traced, progress, table, jnp.int32(3)).learner
    for ours, theirs in zip(jax.tree.leaves(learner.critic), jax.tree.leaves(found.critic), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-6)


def objective_step(method, kept, learner, rows, key):
    """One update, the term being no argument of a compiled program."""
    slope = jax.grad(lambda critic: objective(method, kept, critic, learner, rows, key)[0])(learner.critic)
    critic, optimizer = Adam(method.learning_rate, method.adam_epsilon).step(learner.critic, slope, learner.optimizer)
    return learner._replace(critic=critic, optimizer=optimizer)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["chain:3", "dr3:0.01+l2-init:0.1"])
def test_resuming_is_exact_and_the_host_gives_the_same(tmp_path, logged, word):
    settings: Any = {"regularizer": parse_regularizer(word), "env": None, "progress": False, "metrics_every": 4}
    method = DQN(hidden=(4,), batch_size=4, target_period=3)
    whole = train(logged, method, steps=12, out=tmp_path / "whole", **settings)
    train(logged, method, steps=5, out=tmp_path / "parts", evaluate_every=12, **settings)
    parts = train(logged, method, steps=12, out=tmp_path / "parts", evaluate_every=12, **settings)
    streamed = train(logged, method, steps=12, out=tmp_path / "host", data_on="host", **settings)
    settings["regularizer"] = None
    base = train(logged, method, steps=12, out=tmp_path / "base", **settings)
    for other, equal in ((parts, True), (streamed, True), (base, False)):
        pairs = zip(jax.tree.leaves(whole.critics(12)), jax.tree.leaves(other.critics(12)), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs) == equal


@pytest.mark.slow
def test_resuming_is_exact_where_units_are_drawn_anew(tmp_path, logged):
    method = DQN(hidden=(6,), batch_size=4, target_period=3, redo_every=4, redo_threshold=0.9)
    settings: Any = {"env": None, "progress": False, "metrics_every": 4, "evaluate_every": 12}
    whole = train(logged, method, steps=12, out=tmp_path / "whole", **settings)
    train(logged, method, steps=5, out=tmp_path / "parts", **settings)
    parts = train(logged, method, steps=12, out=tmp_path / "parts", **settings)
    base = train(logged, dataclasses.replace(method, redo_every=0), steps=12, out=tmp_path / "base", **settings)
    for other, equal in ((parts, True), (base, False)):
        pairs = zip(jax.tree.leaves(whole.critics(12)), jax.tree.leaves(other.critics(12)), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs) == equal
