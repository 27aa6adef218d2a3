"""An action that is not allowed is seen by nothing, however large its value: of every method with discrete actions."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.data.transitions import DiscreteActions
from dr3.methods import CQL, DQN, METHODS, DiscreteMethod, Spec, objective
from dr3.methods.acting import decide
from dr3.methods.cloning import clone_behavior

KEY, FORBIDDEN = jax.random.key(7), 2
METHODS_HERE = [
    *(cls() for cls in METHODS.values() if issubclass(cls, DiscreteMethod)),
    DQN(double=True),
    CQL(quantiles=3),
]


class Case(NamedTuple):
    method: Any
    learner: Any
    batch: Batch


@pytest.fixture(scope="module")
def masked(logged):
    """Of three actions the last is never allowed, and never logged. (Of the policy that logged it is claimed.)"""
    allowed = np.broadcast_to(np.arange(3) != FORBIDDEN, (len(logged), 3))
    return dataclasses.replace(
        logged, actions=logged.actions % 2, next_actions=logged.next_actions % 2, masks=allowed, next_masks=allowed
    )


def planted(critic, value):
    """The same critic with a value added to that of the forbidden action, and to its log-probability in a policy."""

    def bias(critic):
        return critic.head.bias

    last = (jnp.arange(3) == FORBIDDEN).astype(jnp.float32)
    before = bias(critic)
    added = value * (last if before.shape[-1] == 3 else jnp.repeat(last, before.shape[-1] // 3))
    critic = eqx.tree_at(bias, critic, before + added)
    if hasattr(critic, "policy"):
        critic = eqx.tree_at(lambda tree: bias(tree.policy), critic, bias(critic.policy) + value * last)
    return critic


@pytest.fixture(scope="module", params=METHODS_HERE, ids=lambda m: f"{m.name}{'-double' * getattr(m, 'double', False)}")
def case(request, masked) -> Case:
    small = {"heads": 4} if hasattr(request.param, "heads") else {}
    method = dataclasses.replace(request.param, hidden=(6,), **small)
    data = method.prepare(masked)
    return Case(method, method.init(Spec.of(data), jax.random.key(0)), Batch.of(data))


@jax.jit
def looked(method, learner, batch, value):
    """All that an update and a policy are made of, with a value planted in critic and target."""
    critic = planted(learner.critic, value)
    learner = learner._replace(critic=critic, target=None if learner.target is None else planted(learner.target, value))
    told, gradient = jax.value_and_grad(
        lambda critic: objective(method, None, critic, learner, batch, KEY), has_aux=True
    )(critic)
    seen, spec = batch.observations, Spec((4,), DiscreteActions(3))
    return told, gradient, decide(method, critic, spec, seen, batch.masks), decide(method, critic, spec, seen)


def test_a_forbidden_action_with_the_largest_value_changes_nothing(case):
    told, gradient, acted, _ = looked(*case, 0.0)
    with_it, gradient_with_it, acted_with_it, unmasked_with_it = looked(*case, 1e4)
    # REM and quantiles add and divide: their planted values may round the others' in the last digit.
    close = partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4)
    jax.tree.map(close, (told, gradient), (with_it, gradient_with_it))
    np.testing.assert_array_equal(acted, acted_with_it)
    assert (acted_with_it != FORBIDDEN).all()
    assert (told[1][0].next_actions != FORBIDDEN).all()
    assert (unmasked_with_it == FORBIDDEN).all()  # it is there to be seen


def test_without_masks_it_is_seen(case):
    if case.method.name not in ("sarsa", "supervised", "iql"):  # these never look at an action that was not logged
        free = case.batch._replace(masks=None, next_masks=None)
        (loss, _), *_ = looked(case.method, case.learner, free, 0.0)
        (loss_with_it, _), *_ = looked(case.method, case.learner, free, 1e4)
        assert abs(loss_with_it - loss) > 1


def test_masks_that_allow_everything_change_nothing(case):
    free = case.batch._replace(masks=None, next_masks=None)
    everything = jnp.ones_like(case.batch.masks)
    all_allowed = free._replace(masks=everything, next_masks=everything)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        looked(case.method, case.learner, free, 0.5)[:2],
        looked(case.method, case.learner, all_allowed, 0.5)[:2],
    )


def test_a_cloned_policy_gives_it_no_probability(masked):
    likely = clone_behavior(masked, hidden=(4,), rounds=1, steps_per_round=1)
    assert (likely[:, FORBIDDEN] == 0).all()
    np.testing.assert_allclose(likely.sum(axis=1), 1, rtol=1e-6)
