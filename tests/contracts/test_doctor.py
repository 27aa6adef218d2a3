"""The doctor sees a critic as its own method does: the same a', the same values on both sides, the same TD error.

That must need no line of the doctor's for a new method: one is defined here that no other part of the code knows.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

import dr3
from dr3 import registry
from dr3.data.batch import Batch
from dr3.diagnostics import measure
from dr3.diagnostics.measure import measure_backup
from dr3.hyperparameters import hyperparameters
from dr3.instruments import ReturnBounds
from dr3.methods import BRAC, METHODS, SAC, ContinuousMethod, Spec, backup_of
from dr3.methods.discrete import Bootstrap, BootstrappedMethod, chosen
from dr3.training import train

KEY = jax.random.key(7)
SMALL = {"channels": (2, 3), "policy_hidden": (8,), "sampled_actions": 3, "warm_start": 1, "behavior_steps": 1}


@hyperparameters
@dataclass(frozen=True)
class Pessimist(BootstrappedMethod):
    """Targets r + γ min_a' Q_target(s', a'): an a' that is neither the logged one nor what the learned policy does."""

    name: ClassVar[str] = "pessimist"

    def bootstrap(self, online: Array, target: Array, batch: Batch) -> Bootstrap:
        actions = jnp.argmin(target, axis=-1)
        return Bootstrap(chosen(target, actions), actions, (actions == batch.actions).astype(jnp.float32))


class Case(NamedTuple):
    method: Any
    learner: Any  # its target network is a copy of its critic
    batch: Batch
    spec: Spec


@pytest.fixture(scope="module", params=[*METHODS.values(), Pessimist], ids=lambda cls: cls.name)
def case(request, logged, logged_continuous, logged_pictures) -> Case:
    method = request.param()
    small = {name: value for name, value in SMALL.items() if hasattr(method, name)}
    method = dataclasses.replace(method, hidden=(8, 6), **small)
    if hasattr(method, "target_rate"):
        method = dataclasses.replace(method, target_rate=1.0)
    table = logged
    if isinstance(method, ContinuousMethod):
        table = logged_pictures if method.crop else logged_continuous
    data = method.prepare(table)
    batch, spec = Batch.of(data), Spec.of(data)

    learner = jax.jit(lambda method: method.init(spec, jax.random.key(0)))(method)
    # Away from where any learner starts, as training would move it: multipliers and other networks too.
    moved = jax.tree.map(lambda leaf: leaf + 0.1 if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, learner)
    return Case(method, method.synchronise(moved), batch, spec)


@pytest.fixture
def seen(case):
    """The Backup that the doctor makes of the critic alone."""
    return backup_of(case.method, case.method.model(case.learner), case.spec, case.batch, KEY)


def test_its_backup_is_the_methods_own(case, seen):
    """But for what a checkpoint does not hold: α in the targets of SAC, π_β in those of BRAC."""
    unknown = dict.fromkeys(getattr(case.method, "LEARNER_TERMS", ()), False)
    method = dataclasses.replace(case.method, **unknown)
    loss = jax.jit(lambda method, learner, batch: method.loss(method.model(learner), learner, batch, KEY))
    _, (own, _) = loss(method, case.learner, case.batch)
    for name, ours, theirs in zip(own._fields, seen, own, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5, err_msg=name)
    measured = measure_backup(seen, ReturnBounds(-1, 1))
    error = np.mean((np.asarray(own.values) - np.asarray(own.targets)) ** 2)
    assert measured["td/error_online"] == pytest.approx(float(error), rel=1e-3)
    assert measured["q/mean"] == pytest.approx(float(own.values.mean()), rel=1e-4, abs=1e-6)


def test_its_two_sides_are_what_the_critic_says_there(case, seen):
    method, critic, batch = case.method, case.method.model(case.learner), case.batch
    sides = ((seen.phi, batch.observations, batch.actions), (seen.phi_next, batch.next_observations, seen.next_actions))
    for phi, observations, actions in sides:
        np.testing.assert_allclose(phi, method.features(critic, observations, actions), rtol=1e-4, atol=1e-5)
    values = method.values(critic, batch.observations, batch.actions)
    np.testing.assert_allclose(seen.values.reshape(-1, len(values)).mean(0), values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", [SAC, BRAC], ids=lambda cls: cls.name)
def test_terms_that_need_a_learner_are_left_out_of_the_targets(method, logged_continuous):
    method = method(hidden=(8, 6), policy_hidden=(8,))
    spec, batch = Spec.of(logged_continuous), Batch.of(logged_continuous)
    critic = method.model(method.init(spec, jax.random.key(0)))
    seen = backup_of(method, critic, spec, batch, KEY)
    following = critic.critics.q(critic.critics.states(batch.next_observations), critic.to_unit(seen.next_actions))
    expected = batch.rewards + method.discount * (1 - batch.terminals) * following.min(axis=0)
    np.testing.assert_allclose(seen.targets, expected, rtol=1e-4, atol=1e-5)


def test_a_run_of_a_method_that_the_doctor_has_never_heard_of(logged, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_added", {kind: {} for kind in registry._added})  # forgotten after the test
    dr3.register(Pessimist)
    method = Pessimist(hidden=(8, 6), batch_size=8, learning_rate=0.01, discount=0.5, target_period=3)
    runs = train(logged, method, steps=4, env=None, out=tmp_path / "run", evaluate_every=1, progress=False)
    measured = measure(runs, logged, gradients=False).columns
    following = np.stack([runs.q(logged.next_observations, np.full(48, action)) for action in range(3)]).min(axis=0)
    errors = runs.q(logged.observations, logged.actions) - logged.rewards - 0.5 * ~logged.terminals * following
    assert measured["td/error_online"][0, -1] == pytest.approx((errors**2).mean(), rel=1e-4)
    # Training's is against the target network: the same where that was just copied, which is at steps 0 and 3.
    while_training = dict(zip(runs.steps.tolist(), runs.metrics["td/error"][0], strict=True))
    agree = [measured["td/error_online"][0, step] == pytest.approx(while_training[step], rel=1e-4) for step in (0, 3)]
    assert all(agree)
    assert measured["td/error_online"][0, 4] != pytest.approx(while_training[4], rel=1e-4)
