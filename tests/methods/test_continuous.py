"""Twin critics and a policy whose numbers are written down here: Q_k(s, a) = c_k + b_k s + a, π a narrow Gaussian."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.data.transitions import ContinuousActions
from dr3.errors import UserError
from dr3.methods import BC, BRAC, SAC, TD3, TD3BC, ContinuousCQL, ContinuousIQL, ReBRAC, Spec
from dr3.networks import ActionCritic, ActorCritic, GaussianPolicy, Linear, StateValue, TwinCritics, ValuedCritics
from dr3.networks.action_critic import StateActionLinear
from dr3.networks.mlp import MLP

KEY = jax.random.key(3)
FAR = 1000.0  # added before the ReLU and taken off after it: the network is then linear


def planted_critic(constant: float, of_state: float) -> ActionCritic:
    """c + b s + a, exactly, for one-dimensional states and actions."""
    first = StateActionLinear(jnp.array([[of_state]]), jnp.ones((1, 1)), jnp.array([FAR]))
    return ActionCritic(first, (), Linear(jnp.array([[1.0]]), jnp.array([constant - FAR])), 1)


def planted_policy(mean: float, log_std: float) -> GaussianPolicy:
    """The same Gaussian in every state."""
    trunk = MLP((Linear(jnp.zeros((1, 1)), jnp.zeros(1)),), 1)
    return GaussianPolicy(trunk, Linear(jnp.zeros((1, 2)), jnp.array([mean, log_std])))


@pytest.fixture
def table(logged_continuous):
    """s = 1, 2, 3: the second is cut by the time, the third is the end; s' = 2, 3, and a state of no use."""
    rows = logged_continuous.rows(np.arange(3))
    return dataclasses.replace(
        rows,
        observations=np.array([[1], [2], [3]], np.float32),
        actions=np.array([[0.5], [-0.5], [0.0]], np.float32),
        rewards=np.array([1, 2, 3], np.float32),
        next_observations=np.array([[2], [3], [1]], np.float32),
        terminals=np.array([False, False, True]),
        timeouts=np.array([False, True, False]),
        next_actions=np.zeros((3, 1), np.float32),
        next_action_known=np.zeros(3, np.bool_),
        action_space=ContinuousActions(1),
    )


def learner_of(method: Any, table: Any, log_std: float = -5.0) -> Any:
    """Online critics 1 + s and 2 + s, target critics 10 s and 12 s - 3, both plus a; the policy's mode is tanh(0.3)."""
    small = dataclasses.replace(method, hidden=(1,), policy_hidden=(1,))
    learner = jax.jit(small.init, static_argnums=0)(Spec.of(table), KEY)
    online = TwinCritics((planted_critic(1.0, 1.0), planted_critic(2.0, 1.0)), None)
    target = TwinCritics((planted_critic(0.0, 10.0), planted_critic(-3.0, 12.0)), None)
    return learner._replace(model=ActorCritic(online, planted_policy(0.3, log_std), -1.0, 1.0), target=target)


def told(method, learner, table):
    return jax.jit(lambda m, learner, b: m.loss(learner.model, learner, b, KEY))(method, learner, Batch.of(table))


def test_targets_take_the_smaller_target_critic_and_bootstrap_past_time_outs_only(table):
    method = SAC(discount=0.5, entropy_backup=False)
    _, (backup, info) = told(method, learner_of(method, table), table)
    # min(10 s', 12 s' - 3): at s' = 2 it is 20, at s' = 3 it is 30; plus a'. The last row is an end.
    a = np.asarray(backup.next_actions)[:, 0]
    assert np.abs(a - math.tanh(0.3)).max() < 0.05
    np.testing.assert_allclose(backup.next_values[:2], [20 + a[0], 30 + a[1]], rtol=1e-4)
    expected = np.array([1 + 0.5 * (20 + a[0]), 2 + 0.5 * (30 + a[1]), 3])
    np.testing.assert_allclose(backup.targets, expected, rtol=1e-4)
    q = np.array([[2.5, 2.5, 4.0], [3.5, 3.5, 5.0]])
    np.testing.assert_allclose(backup.values, q, atol=1e-3)
    assert info["losses/td"] == pytest.approx(((q - expected) ** 2).mean(), rel=1e-3)
    # At s' = 1 the second would be the smaller: 12 - 3 < 10.
    assert backup.next_values[2] == pytest.approx(9 + a[2], rel=1e-3)


def test_entropy_in_the_backup(table):
    plain, soft = (SAC(discount=0.5, entropy_backup=on, temperature=0.25) for on in (False, True))
    learner = learner_of(plain, table, log_std=-1.0)
    (_, (without, _)), (_, (with_it, _)) = (told(method, learner, table) for method in (plain, soft))
    density = learner.model.policy(jnp.ones((3, 1))).log_density_at(jnp.arctanh(with_it.next_actions))
    np.testing.assert_allclose(with_it.next_values, without.next_values - 0.25 * density, rtol=1e-4)


def test_the_temperature_falls_while_the_policy_is_more_random_than_wanted(table):
    """-E[log π] of a wide policy is near log 2, above the target -1; that of one with std e⁻⁵ is far below it."""
    method = SAC(policy_learning_rate=0.01)
    step = jax.jit(lambda m, learner, b: m.update(learner, b, KEY, None)[0])
    for log_std, sign in ((0.0, -1), (-5.0, 1)):
        moved = step(method, learner_of(method, table, log_std), Batch.of(table))
        assert np.sign(moved.extras["temperature"].parameters) == sign


def test_the_conservative_gap_by_hand(table):
    """With Q_k = c_k + s + a the gap of a row is log Σ_j exp(a_j - log p(a_j)) - a_logged, for either critic."""
    method = ContinuousCQL(sampled_actions=4, alpha=2.0)
    learner = learner_of(method, table, log_std=-1.0)
    loss, (_, info) = told(method, learner, table)
    of_td, of_gap = jax.random.split(KEY)
    of_uniform, of_here, of_next = jax.random.split(of_gap, 3)
    pi = learner.model.policy(jnp.ones((3, 1)))
    uniform = jax.random.uniform(of_uniform, (4, 3, 1), minval=-1.0, maxval=1.0)
    terms = [np.asarray(uniform)[..., 0] - 1 * math.log(0.5)]  # the density of a uniform action is 0.5^1
    for key in (of_here, of_next):
        drawn = pi.sample(key, 4)
        terms.append(np.asarray(drawn.actions)[..., 0] - np.asarray(drawn.log_density))
    gap = np.log(np.exp(np.concatenate(terms)).sum(axis=0)) - np.array([0.5, -0.5, 0.0])
    assert info["losses/cql"] == pytest.approx(gap.mean(), rel=1e-3)
    td, _ = SAC(entropy_backup=False).loss(learner.model, learner, Batch.of(table), of_td)
    assert loss == pytest.approx(float(td) + 2 * gap.mean(), rel=1e-4)


def test_the_multiplier_grows_while_the_gap_is_too_large(table):
    update = jax.jit(lambda m, learner, b: m.update(learner, b, KEY, None)[0])
    for threshold, sign in ((0.0, 1), (100.0, -1)):
        method = ContinuousCQL(sampled_actions=4, lagrange=threshold)
        learner = learner_of(method, table)
        loss, (_, info) = told(method, learner, table)
        assert loss == pytest.approx(float(info["losses/td"] + 5 * info["losses/cql"] - threshold), rel=1e-5)
        assert np.sign(update(method, learner, Batch.of(table)).extras["lagrange"].parameters) == sign


def test_max_backup_takes_the_best_of_several_actions_for_each_critic(table):
    method = ContinuousCQL(sampled_actions=6, max_backup=True, discount=0.5)
    learner = learner_of(method, table, log_std=-1.0)
    _, (backup, _) = told(method, learner, table)
    of_td, _ = jax.random.split(KEY)
    best = np.asarray(learner.model.policy(jnp.ones((3, 1))).sample(of_td, 6).actions).max(axis=0)[:, 0]
    np.testing.assert_allclose(backup.next_actions[:, 0], best, rtol=1e-6)
    np.testing.assert_allclose(backup.next_values, np.array([20, 30, 9]) + best, rtol=1e-4)


def test_the_warm_start_follows_the_logged_actions_then_the_critics(table):
    """Logged actions are 0 in the mean, below tanh(0.3); critics like large actions."""
    batch = Batch.of(table)
    for updates, sign in ((0, -1), (1, 1)):
        method = ContinuousCQL(sampled_actions=2, warm_start=1, temperature=0.0)
        learner = learner_of(method, table, log_std=-1.0)._replace(updates=jnp.int32(updates))
        slope = jax.grad(lambda p, m=method, at=learner: m.policy_loss(p, at, batch, KEY)[0])(learner.model.policy)
        assert np.sign(-slope.head.bias[0]) == sign


@pytest.mark.parametrize("form", ["paper", "kl"])
@pytest.mark.parametrize("value_penalty", [True, False])
def test_bracs_targets_by_hand(table, form, value_penalty):
    method = BRAC(form=form, value_penalty=value_penalty, discount=0.5, behavior_weight=0.2)
    learner = learner_of(method, table, log_std=-1.0)
    behavior = learner.extras["behavior"]._replace(parameters=planted_policy(-0.4, -0.5))
    learner = learner._replace(extras={"behavior": behavior})
    _, (backup, _) = told(method, learner, table)
    drawn = learner.model.policy(jnp.ones((3, 1))).sample(KEY, 1 if form == "paper" else 4)
    likelihood = np.asarray(behavior.parameters(jnp.ones((3, 1))).log_density_at(drawn.raw))
    divergence = (np.asarray(drawn.log_density) - likelihood).mean(axis=0)
    bonus = 0.2 * likelihood[0] if form == "paper" else -0.2 * divergence
    worth = np.array([20, 30, 9]) + np.asarray(drawn.actions)[0, :, 0] + (bonus if value_penalty else 0)
    np.testing.assert_allclose(backup.targets, [1 + 0.5 * worth[0], 2 + 0.5 * worth[1], 3], rtol=1e-4)
    # The policy: Q is the smaller critic, 1 + s + a.
    here = learner.model.policy(jnp.ones((3, 1))).sample(KEY, 1 if form == "paper" else 4)
    after = learner._replace(updates=jnp.int32(method.behavior_steps))
    loss, _ = method.policy_loss(learner.model.policy, after, Batch.of(table), KEY)
    q = 1 + np.array([1, 2, 3]) + np.asarray(here.actions)[0, :, 0]
    entropy = 0.1 * np.asarray(here.log_density)[0] if form == "paper" else 0.0
    assert loss == pytest.approx(float((-bonus + entropy - q).mean()), rel=1e-4)


def test_brac_clones_first_then_freezes_what_it_cloned(table):
    method = BRAC(behavior_steps=2, hidden=(4,), policy_hidden=(4,))
    update = jax.jit(lambda m, learner: m.update(learner, Batch.of(table), KEY, None))
    begun = jax.jit(method.init, static_argnums=0)(Spec.of(table), KEY)
    learners, losses = [begun], []
    for _ in range(4):
        learner, loss = update(method, learners[-1])
        learners.append(learner)
        losses.append(float(loss))

    def same(one, other, part):
        return all((a == b).all() for a, b in zip(*(jax.tree.leaves(part(x)) for x in (one, other)), strict=True))

    behavior, critic = (lambda x: x.extras["behavior"].parameters), (lambda x: x.model)
    pairs = list(pairwise(learners))
    assert [same(*pair, behavior) for pair in pairs] == [False, False, True, True]
    assert [same(*pair, critic) for pair in pairs] == [True, True, False, False]
    assert losses[1] < losses[0]


def test_td3_adds_clipped_noise_to_what_the_trailing_policy_does(table):
    """The trailing policy's mode is tanh(-0.2), the policy's own tanh(0.3): only the former is in the targets."""
    method = TD3(discount=0.5, target_noise=0.8, noise_clip=0.1)
    learner = learner_of(method, table)
    trailing = learner.extras["target_policy"]._replace(parameters=planted_policy(-0.2, 0.0))
    learner = learner._replace(extras={"target_policy": trailing})
    _, (backup, _) = told(method, learner, table)
    noise = np.clip(0.8 * np.asarray(jax.random.normal(KEY, (3, 1))), -0.1, 0.1)
    a = np.clip(math.tanh(-0.2) + noise, -1, 1)
    np.testing.assert_allclose(backup.next_actions, a, rtol=1e-5)
    np.testing.assert_allclose(backup.targets, [1 + 0.5 * (20 + a[0, 0]), 2 + 0.5 * (30 + a[1, 0]), 3], rtol=1e-4)
    # The policy: minus the first critic, 1 + s + a.
    loss, _ = method.policy_loss(learner.model.policy, learner, Batch.of(table), KEY)
    assert loss == pytest.approx(-(1 + 2 + math.tanh(0.3)), rel=1e-4)


def test_td3_moves_its_policy_at_every_second_update_and_the_trailing_one_with_the_targets(table):
    method = TD3(hidden=(4,), policy_hidden=(4,), target_rate=0.5)
    update = jax.jit(lambda m, learner: m.update(learner, Batch.of(table), KEY, None)[0])
    begun = jax.jit(method.init, static_argnums=0)(Spec.of(table), KEY)
    once = update(method, begun)
    twice = update(method, once)
    policies = [np.asarray(learner.model.policy.head.bias) for learner in (begun, once, twice)]
    np.testing.assert_array_equal(policies[0], policies[1])
    assert (policies[1][0] != policies[2][0]) & (policies[1][1] == policies[2][1])  # the mean, and no deviation
    np.testing.assert_array_equal(twice.extras["target_policy"].parameters.head.bias, policies[0])
    moved = method.synchronise(twice).extras["target_policy"].parameters.head.bias
    np.testing.assert_allclose(moved, (policies[0] + policies[2]) / 2, rtol=1e-6)


def test_td3_bc_weighs_the_critic_by_the_size_of_its_values(table):
    method = TD3BC(alpha=2.5)
    learner = learner_of(method, table)
    loss, _ = method.policy_loss(learner.model.policy, learner, Batch.of(table), KEY)
    a = math.tanh(0.3)
    q = np.array([2, 3, 4]) + a
    cloning = ((a - np.array([0.5, -0.5, 0.0])) ** 2).mean()
    assert loss == pytest.approx(cloning - 2.5 * q.mean() / np.abs(q).mean(), rel=1e-4)
    # λ is a number: the slope of the mode is 2 · mean(a - a_logged) - 2.5 / mean |Q|.
    slope = jax.grad(lambda p: method.policy_loss(p, learner, Batch.of(table), KEY)[0])(learner.model.policy)
    assert slope.head.bias[0] == pytest.approx((2 * a - 2.5 / q.mean()) * (1 - a**2), rel=1e-3)


def test_rebrac_pays_in_its_targets_and_in_its_policy(table):
    logged = dataclasses.replace(table, next_actions=np.array([[0.1], [-0.9], [0.0]], np.float32))
    method = ReBRAC(discount=0.5, policy_penalty=0.3, critic_penalty=2.0, target_noise=0.0)
    learner = learner_of(method, logged)
    learner = learner._replace(
        extras={"target_policy": learner.extras["target_policy"]._replace(parameters=learner.model.policy)}
    )
    _, (backup, _) = told(method, learner, logged)
    a = math.tanh(0.3)
    worth = np.array([20 + a - 2 * (a - 0.1) ** 2, 30 + a - 2 * (a + 0.9) ** 2])
    np.testing.assert_allclose(backup.targets, [1 + worth[0] / 2, 2 + worth[1] / 2, 3], rtol=1e-4)
    loss, _ = method.policy_loss(learner.model.policy, learner, Batch.of(logged), KEY)
    q = np.array([2, 3, 4]) + a  # the smaller critic's
    away = (a - np.array([0.5, -0.5, 0.0])) ** 2
    assert loss == pytest.approx(float((0.3 * away - q / np.abs(q).mean()).mean()), rel=1e-4)


def test_rebrac_needs_the_action_taken_next(table):
    kept = ReBRAC().prepare(dataclasses.replace(table, next_action_known=np.array([True, False, False])))
    np.testing.assert_array_equal(kept.rewards, [1, 3])  # the second row was cut by the time
    with pytest.raises(UserError, match="rebrac needs the action taken after each row"):
        ReBRAC().prepare(dataclasses.replace(table, terminals=np.zeros(3, np.bool_)))


def test_iqls_three_losses_by_hand(table):
    """V = 9 + 2 s. Q̄ at logged actions is the smaller of 10 s and 12 s - 3, plus a: 9.5, 19.5, 30."""
    method = ContinuousIQL(discount=0.5, expectile=0.9, advantage_weight=0.2)
    learner = learner_of(method, dataclasses.replace(table, next_action_known=np.array([True, False, False])))
    value = StateValue(
        MLP((Linear(jnp.array([[2.0]]), jnp.array([FAR])),), 1), Linear(jnp.ones((1, 1)), jnp.array([9 - FAR]))
    )
    critics = ValuedCritics(learner.model.critics.members, None, value)
    learner = learner._replace(model=dataclasses.replace(learner.model, critics=critics))
    marked = method.prepare(dataclasses.replace(table, next_action_known=np.array([True, False, False])))
    loss, (backup, info) = told(method, learner, marked)
    # Logged at the first row, not at the second: there it is the policy's.
    np.testing.assert_allclose(backup.next_actions, [[0.0], [math.tanh(0.3)], [0.0]], atol=1e-6)
    np.testing.assert_allclose(backup.targets, [1 + 13 / 2, 2 + 15 / 2, 3], rtol=1e-4)
    u = np.array([9.5 - 11, 19.5 - 13, 30 - 15])
    expected = (np.array([0.1, 0.9, 0.9]) * u**2).mean()
    assert info["losses/value"] == pytest.approx(expected, rel=1e-3)
    assert loss == pytest.approx(float(info["losses/td"]) + expected, rel=1e-3)
    likelihood = learner.model.policy(jnp.ones((3, 1))).log_density(jnp.asarray(table.actions))
    policy, _ = method.policy_loss(learner.model.policy, learner, Batch.of(marked), KEY)
    assert policy == pytest.approx(-(np.exp(0.2 * u) * np.asarray(likelihood)).mean(), rel=1e-3)


def test_cloning_finds_the_logged_actions(table):
    method = BC(hidden=(4,), policy_hidden=(32,), policy_learning_rate=0.003)

    @jax.jit
    def run(method, learner):
        batch = Batch.of(table)
        return jax.lax.fori_loop(0, 3000, lambda _, now: method.update(now, batch, KEY, None)[0], learner)

    learner = run(method, jax.jit(method.init, static_argnums=0)(Spec.of(table), KEY))
    np.testing.assert_allclose(method.act(learner.model, jnp.asarray(table.observations)), table.actions, atol=0.05)


def test_the_units_of_actions_do_not_matter(table):
    """Actions counted from 0 to 10 instead of -1 to 1: the same losses, and the same policy in the other unit."""
    other = dataclasses.replace(table, actions=5 + 5 * table.actions, action_space=ContinuousActions(1, 0.0, 10.0))
    method = ContinuousCQL(sampled_actions=2)
    learner = learner_of(method, table, log_std=-1.0)
    scaled = learner._replace(model=dataclasses.replace(learner.model, low=0.0, high=10.0))
    (loss, (backup, _)), (same, (in_tens, _)) = told(method, learner, table), told(method, scaled, other)
    assert same == pytest.approx(float(loss), rel=1e-5)
    np.testing.assert_allclose(in_tens.next_actions, 5 + 5 * backup.next_actions, rtol=1e-5)
    np.testing.assert_allclose(method.act(scaled.model, jnp.ones((1, 1))), 5 + 5 * math.tanh(0.3), rtol=1e-5)


def test_rewards_are_scaled_where_learning_looks_at_them(table):
    prepared = SAC(reward_scale=4.0, reward_shift=-0.5).prepare(table)
    np.testing.assert_allclose(prepared.rewards, [2, 6, 10])
    assert SAC().prepare(table) is table


def test_what_cannot_be_trained_is_refused(logged):
    with pytest.raises(UserError, match="sac needs continuous actions, but those of logged are discrete; use cql"):
        SAC().prepare(logged)
    with pytest.raises(UserError, match="every width in policy_hidden must be at least 1"):
        SAC(policy_hidden=(0,))
    with pytest.raises(UserError, match="sampled_actions must be at least 1"):
        ContinuousCQL(sampled_actions=0)
    with pytest.raises(UserError, match="behavior_weight must be at least 0"):
        BRAC(behavior_weight=-1)
