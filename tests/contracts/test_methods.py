"""What every method owes to training, regularizers and instruments. A new entry of `METHODS` is held to it as it is."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from typing import Any, NamedTuple, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import jaxtyped

from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.hyperparameters import from_json, to_json
from dr3.methods import BRAC, METHODS, ContinuousMethod, Method, Spec, objective
from dr3.methods.continuous import POLICY_NOISE, Learner
from dr3.networks import ActorCritic
from dr3.regularizers import DR3
from dr3.shapes import check_shapes
from dr3.training.loop import Progress, advance, compiled_loop

KEY = jax.random.key(7)


class Case(NamedTuple):
    method: Any
    learner: Any
    batch: Batch
    spec: Spec


# So small that every phase of a run is past after a few updates.
SMALL = {
    "channels": (2, 3),
    "policy_hidden": (8,),
    "sampled_actions": 3,
    "warm_start": 1,
    "behavior_steps": 1,
}


@pytest.fixture(scope="module", params=list(METHODS))
def case(request, logged, logged_continuous, logged_pictures) -> Case:
    return case_of(METHODS[request.param](), logged, logged_continuous, logged_pictures)


def case_of(method, logged, logged_continuous, logged_pictures) -> Case:
    small = {name: value for name, value in SMALL.items() if hasattr(method, name)}
    method = dataclasses.replace(method, hidden=(8, 6), batch_size=8, **small)
    if not isinstance(method, ContinuousMethod):
        data = method.prepare(logged)
    elif not method.crop:
        data = method.prepare(logged_continuous)
    else:
        method = dataclasses.replace(method, crop=1)
        data = method.prepare(logged_pictures)
    spec = Spec.of(data)
    learner = fresh(method, spec, jax.random.key(0))
    # A few updates away from the start, so that the critic and its target network differ.
    batch = Batch.of(data)
    for _ in range(3):
        learner, _ = update(dataclasses.replace(method, learning_rate=0.01), learner, batch, None)
    return Case(method, learner, batch, spec)


@partial(jax.jit, static_argnums=1)
def fresh(method, spec, key):
    return method.init(spec, key)


@jax.jit
def update(method, learner, batch, regularizer):
    return method.update(learner, batch, KEY, regularizer)


@jax.jit
def evaluate(method, learner, batch, regularizer):
    """The objective with all that it returns, and its gradient."""
    return jax.value_and_grad(lambda critic: objective(method, regularizer, critic, learner, batch, KEY), has_aux=True)(
        method.model(learner)
    )


def assert_same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_hyperparameters_survive_json(case):
    record = json.loads(json.dumps(to_json(case.method)))
    assert record == to_json(case.method)
    assert from_json(METHODS, record) == case.method


def test_loss_is_a_finite_number_and_what_is_logged_of_it_too(case):
    (loss, (_, info)), _ = evaluate(case.method, case.learner, case.batch, None)
    assert loss.shape == ()
    assert loss.dtype == jnp.float32
    assert np.isfinite(loss)
    assert info
    for name, value in info.items():
        assert name.startswith("losses/")
        assert value.shape == ()
        assert np.isfinite(value)


def test_what_a_method_gives_has_the_shapes_of_its_types(case):
    (_, (backup, _)), _ = evaluate(case.method, case.learner, case.batch, None)
    check_shapes("a batch and its backup", case.batch, backup)
    critic, (seen, actions) = case.method.model(case.learner), case.batch[:2]
    with jaxtyped("context"):
        assert isinstance(seen, get_type_hints(Method.act)["observations"])
        assert isinstance(case.method.act(critic, seen), get_type_hints(Method.act)["return"])
        assert isinstance(case.method.values(critic, seen, actions), get_type_hints(Method.values)["return"])
        assert isinstance(case.method.features(critic, seen, actions), get_type_hints(Method.features)["return"])


def test_a_backup_of_another_shape_is_refused(case):
    """(n, 1) beside (n,) would be broadcast to (n, n)."""

    class Careless(type(case.method)):
        def loss(self, critic, learner, batch, key):
            loss, (backup, info) = super().loss(critic, learner, batch, key)
            return loss, (backup._replace(targets=backup.targets[:, None]), info)

    careless = Careless(**vars(case.method))
    with pytest.raises(UserError, match=rf"backup of {case.method.name}: its targets has the shape \(\d+, 1\)"):
        objective(careless, None, case.method.model(case.learner), case.learner, case.batch, KEY)


def test_backup_has_the_shapes_it_promises(case):
    (_, (backup, _)), _ = evaluate(case.method, case.learner, case.batch, None)
    rows = len(case.batch.rewards)
    looked = case.method.features(case.method.model(case.learner), case.batch.observations, case.batch.actions)
    assert backup.phi.shape == backup.phi_next.shape == looked.shape
    assert backup.values.shape == looked.shape[:-1]
    assert backup.values.shape[-1:] == backup.targets.shape == backup.next_values.shape == (rows,)
    assert backup.bootstraps.shape == backup.same_output.shape == (rows,)
    assert backup.actions.shape == backup.next_actions.shape == case.batch.actions.shape
    floats = (backup.phi, backup.phi_next, backup.values, backup.targets, backup.bootstraps, backup.same_output)
    assert {column.dtype for column in floats} == {jnp.dtype(jnp.float32)}
    np.testing.assert_array_equal(backup.bootstraps, 1 - case.batch.terminals)
    np.testing.assert_array_equal(backup.actions, case.batch.actions)
    assert ((backup.same_output >= 0) & (backup.same_output <= 1)).all()


def test_backup_is_seen_by_the_online_critic(case):
    (_, (backup, _)), _ = evaluate(case.method, case.learner, case.batch, None)
    critic, batch, method = case.method.model(case.learner), case.batch, case.method
    close = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
    close(backup.phi, method.features(critic, batch.observations, batch.actions))
    close(backup.phi_next, method.features(critic, batch.next_observations, backup.next_actions))
    # An ensemble's value is the mean of its critics'.
    rows = len(batch.rewards)
    close(backup.values.reshape(-1, rows).mean(axis=0), method.values(critic, batch.observations, batch.actions))


def test_no_gradient_comes_from_the_targets(case):
    method, learner, batch, _ = case

    @jax.jit
    def of_targets(critic):
        return jax.grad(lambda critic: method.loss(critic, learner, batch, KEY)[1][0].targets.sum())(critic)

    critic = method.model(learner)
    assert_same(of_targets(critic), jax.tree.map(jnp.zeros_like, critic))


def test_no_gradient_reaches_the_policy(case):
    """Neither of the loss nor of DR3, though a' is the policy's."""
    if isinstance(case.method, ContinuousMethod):
        _, gradient = evaluate(*case[:3], DR3(1.0))
        assert_same(gradient.policy, jax.tree.map(jnp.zeros_like, gradient.policy))
        assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(gradient.critics))


def test_without_a_regularizer_the_objective_is_the_loss(case):
    loss, (backup, info) = jax.jit(lambda m, learner, b: m.loss(m.model(learner), learner, b, KEY))(*case[:3])
    (total, (same_backup, same_info)), _ = evaluate(case.method, case.learner, case.batch, None)
    assert total == pytest.approx(float(loss), rel=1e-6)
    assert info.keys() == same_info.keys()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), backup, same_backup)


def test_without_a_regularizer_the_update_is_the_base_methods_bit_for_bit(case):
    """Not even the mention of a regularizer is in the program: the compiler is handed the same text."""

    def base(method, learner, batch):
        if isinstance(method, ContinuousMethod):
            return base_of_continuous(method, learner, batch)

        def loss(critic):
            return method.loss(critic, learner, batch, KEY)[0]

        before, gradient = jax.value_and_grad(loss)(learner.critic)
        critic, optimizer = method._optimizer.step(learner.critic, gradient, learner.optimizer)
        return learner._replace(critic=critic, optimizer=optimizer), before

    assert_same(update(*case[:3], None), jax.jit(base)(*case[:3]))


def base_of_continuous(method, learner, batch):
    batch, model = method.cropped(batch, KEY), learner.model

    def loss(critics):
        value, (_, info) = method.critic_loss(dataclasses.replace(model, critics=critics), learner, batch, KEY)
        return value, info

    def step(learner):
        (before, info), gradient = jax.value_and_grad(loss, has_aux=True)(model.critics)
        critics, optimizer = method._optimizer.step(model.critics, gradient, learner.optimizer)
        policy, of_policy, noted = method.policy_step(learner, batch, jax.random.fold_in(KEY, POLICY_NOISE))
        both, extras = ActorCritic(critics, policy, model.low, model.high), method.update_extras(learner, info | noted)
        return Learner(both, learner.target, optimizer, of_policy, extras, learner.updates + 1), before

    if not isinstance(method, BRAC):
        return step(learner)
    phases = (lambda learner: method.clone(learner, batch), step)
    return jax.lax.cond(learner.updates < method.behavior_steps, *phases, learner)


def test_the_penalty_enters_linearly_in_its_coefficient(case):
    (base, (backup, _)), off = evaluate(*case[:3], None)
    penalty, expected = float(DR3()(backup)), of_penalty(*case[:3])
    assert penalty > 0
    for coefficient in (0.5, 3.0):
        (total, (_, info)), on = evaluate(*case[:3], DR3(coefficient))
        assert info["losses/dr3"] == pytest.approx(penalty, rel=1e-5)
        assert total == pytest.approx(float(base) + coefficient * penalty, rel=1e-5)
        added = jax.tree.map(lambda with_it, without: with_it - without, on, off)
        scaled = jax.tree.map(partial(jnp.multiply, coefficient), expected)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), added, scaled)
    assert any(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(expected))


@jax.jit
def of_penalty(method, learner, batch):
    return jax.grad(lambda critic: DR3()(method.loss(critic, learner, batch, KEY)[1][0]))(method.model(learner))


def test_an_update_is_a_function_of_its_arguments(case):
    assert_same(update(*case[:3], DR3()), update(*case[:3], DR3()))


def test_an_update_lowers_the_loss_and_leaves_the_target_alone(case):
    # Policy and pictures stay, so that the loss is the same function before and after.
    still = {"policy_learning_rate": 0.0, "crop": 0} if isinstance(case.method, ContinuousMethod) else {}
    small = dataclasses.replace(case.method, learning_rate=1e-4, **still)
    after, before = update(small, case.learner, case.batch, None)
    (now, _), _ = evaluate(small, after, case.batch, None)
    _, gradient = evaluate(small, case.learner, case.batch, None)
    moved = jax.tree.map(jnp.subtract, small.model(after), small.model(case.learner))
    assert sum(jnp.vdot(slope, way) for slope, way in zip(*map(jax.tree.leaves, (gradient, moved)), strict=True)) < 0
    if not hasattr(case.method, "expectile"):  # the V of IQL's targets has moved, too
        assert now < before
    assert_same(after.target, case.learner.target)


def test_the_order_of_a_batch_does_not_matter(case):
    if isinstance(case.method, ContinuousMethod):
        pytest.skip("the noise of an action belongs to its place in the batch")
    order = np.random.default_rng(0).permutation(len(case.batch.rewards))
    (loss, _), gradient = evaluate(*case[:3], DR3())
    (shuffled, _), of_shuffled = evaluate(case.method, case.learner, case.batch.take(jnp.asarray(order)), DR3())
    assert shuffled == pytest.approx(float(loss), rel=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), gradient, of_shuffled)


def test_what_was_learned_can_be_used(case):
    method, learner, batch, spec = case
    critic, rows = method.model(learner), len(batch.rewards)
    actions = method.act(critic, batch.observations)
    assert actions.shape == batch.actions.shape
    space = spec.action_space
    low, high = (space.low, space.high) if isinstance(method, ContinuousMethod) else (0, space.count - 1)
    assert ((actions >= low) & (actions <= high)).all()
    assert method.values(critic, batch.observations, actions).shape == (rows,)
    assert method.features(critic, batch.observations, actions).shape[-2:] == (rows, 6)


def test_a_fresh_learner_follows_from_its_key(case):
    method, spec = case.method, case.spec
    assert_same(fresh(method, spec, jax.random.key(3)), fresh(method, spec, jax.random.key(3)))
    one, other = (jax.tree.leaves(method.model(fresh(method, spec, jax.random.key(seed)))) for seed in (3, 4))
    # … but for biases that start at one number in either.
    assert all((a != b).any() or (a == a.ravel()[0]).all() for a, b in zip(one, other, strict=True))
    assert any((a != b).any() for a, b in zip(one, other, strict=True))


def test_synchronising_is_for_target_networks(case):
    method, learner = case.method, case.learner
    if method.synchronise_every is None:
        assert learner.target is None
        assert method.synchronise(learner) is learner
    else:
        assert method.synchronise_every >= 1
        whole = dataclasses.replace(method, target_rate=1.0)
        online = learner.model.critics if isinstance(method, ContinuousMethod) else learner.critic
        assert_same(whole.synchronise(learner).target, online)


def test_numbers_are_arguments_of_the_compiled_program(case):
    """Members that differ in a float, or in the target period, share one program."""
    floats = floats_of(case.method)
    leaves = jax.tree.leaves(case.method)
    assert len(leaves) == len(floats) + (case.method.synchronise_every is not None)
    # Weight decay is AdamW's, and refused with another optimizer.
    assert_one_program(case, [name for name in floats if name != "weight_decay"])


@pytest.mark.parametrize("name", ["dqn", "sac"])
def test_the_weight_decay_of_adamw_is_an_argument_too(name, logged, logged_continuous, logged_pictures):
    method = METHODS[name](optimizer="adamw", weight_decay=0.1)
    case = case_of(method, logged, logged_continuous, logged_pictures)
    assert_one_program(case, ["weight_decay"])


def floats_of(method) -> list[str]:
    return [field.name for field in dataclasses.fields(method) if isinstance(getattr(method, field.name), float)]


def assert_one_program(case, names) -> None:
    """With these settings halved, what is learned is another, and nothing is compiled for it."""

    def two_updates(method, regularizer, seed):
        traced = jax.tree.map(jnp.asarray, (method, regularizer, np.uint32(seed)))
        start = Progress(jax.tree.map(jnp.array, case.learner), jnp.int32(0), jnp.array(True))
        return advance(*traced, start, case.batch, jnp.int32(2))

    method, compiled = case.method, compiled_loop()
    first = two_updates(method, DR3(0.1), 0)
    programs = compiled._cache_size()
    changed = dataclasses.replace(method, **{name: 0.5 * getattr(method, name) for name in names})
    other = two_updates(changed, DR3(0.1), 0)
    two_updates(method, DR3(0.2), 1)
    assert compiled._cache_size() == programs
    pairs = zip(*(jax.tree.leaves(method.model(end.learner)) for end in (first, other)), strict=True)
    assert all((one != another).any() for one, another in pairs)
