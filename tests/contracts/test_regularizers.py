"""What every regularizer owes to methods and to training. A new entry of `REGULARIZERS` is held to it as it is."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.hyperparameters import from_json, to_json
from dr3.methods import DQN, Spec, objective
from dr3.notation import spell
from dr3.regularizers import REGULARIZERS, LabelNoiseDR3, Memory, Regularizer, Remembering, remembered
from dr3.regularizers.parse import parse_regularizer
from dr3.training.loop import Progress, advance, compiled_loop

KEY = jax.random.key(7)
VARIANTS = {**{name: cls() for name, cls in REGULARIZERS.items()}, "all parameters": LabelNoiseDR3(scope="all")}


class Case(NamedTuple):
    regularizer: Any
    method: DQN
    learner: Any
    batch: Batch
    before: Any  # another critic, in the place of what training keeps


@pytest.fixture(scope="module", params=list(VARIANTS))
def case(request, logged) -> Case:
    method = DQN(hidden=(6,), batch_size=8)
    batch = Batch.of(logged.rows(np.arange(16)))
    learner, other = (method.init(Spec.of(logged), jax.random.key(seed)) for seed in (0, 1))
    return Case(VARIANTS[request.param], method, learner, batch, other.critic)


@jax.jit
def evaluate(regularizer, method, learner, batch, before):
    """The objective, what is logged of it, and its gradient."""
    memory = Memory(**dict.fromkeys(remembered(regularizer), before))
    term = Remembering(regularizer, memory) if remembered(regularizer) else regularizer

    def total(critic):
        loss, (_, info) = objective(method, term, critic, learner, batch, KEY)
        return loss, info

    return jax.value_and_grad(total, has_aux=True)(learner.critic)


def penalty_of(case, batch=None):
    (_, info), _ = evaluate(*case._replace(batch=case.batch if batch is None else batch))
    return float(info[f"losses/{case.regularizer.name.replace('-', '_')}"])


def test_it_says_its_name_and_its_coefficient(case):
    assert isinstance(case.regularizer, Regularizer)
    assert case.regularizer.coefficient > 0
    assert dataclasses.fields(case.regularizer)[0].name == "coefficient"


def test_it_survives_json_and_a_word(case):
    assert from_json(REGULARIZERS, json.loads(json.dumps(to_json(case.regularizer)))) == case.regularizer
    assert parse_regularizer(spell(case.regularizer)) == case.regularizer


def test_penalty_and_gradient_are_finite_and_not_nothing(case):
    (total, info), gradient = evaluate(*case)
    assert np.isfinite(total)
    assert all(np.isfinite(value) for value in info.values())
    (_, _), without = evaluate(None, *case[1:])
    added = jax.tree.map(lambda a, b: np.abs(a - b).max(), gradient, without)
    assert np.isfinite(jax.tree.leaves(added)).all()
    assert max(jax.tree.leaves(added)) > 0
    assert penalty_of(case) != 0


def test_the_objective_is_linear_in_the_coefficient(case):
    (base, _), _ = evaluate(None, *case[1:])
    for coefficient in (0.25, 2.0):
        (total, _), _ = evaluate(dataclasses.replace(case.regularizer, coefficient=coefficient), *case[1:])
        assert total == pytest.approx(float(base) + coefficient * penalty_of(case), rel=1e-5)


def test_the_order_of_a_batch_does_not_matter(case):
    order = np.random.default_rng(0).permutation(len(case.batch.rewards))
    assert penalty_of(case, case.batch.take(jnp.asarray(order))) == pytest.approx(penalty_of(case), rel=1e-3)


def test_what_is_stored_after_a_terminal_does_not_matter(case):
    ended = case.batch.terminals > 0
    assert ended.any()
    planted = jnp.where(ended[:, None], 50.0, case.batch.next_observations)
    assert penalty_of(case, case.batch._replace(next_observations=planted)) == pytest.approx(penalty_of(case), rel=1e-5)


def test_coefficients_are_arguments_of_the_compiled_loop(case):
    compiled = compiled_loop()

    def two_updates(coefficient):
        regularizer = dataclasses.replace(case.regularizer, coefficient=coefficient)
        traced = jax.tree.map(jnp.asarray, (case.method, regularizer, np.uint32(0)))
        memory = Memory(**{name: jax.tree.map(jnp.array, case.before) for name in remembered(regularizer)})
        start = Progress(jax.tree.map(jnp.array, case.learner), jnp.int32(0), jnp.array(True), memory)
        return advance(*traced, start, case.batch, jnp.int32(2))

    one = two_updates(0.1)
    programs = compiled._cache_size()
    other = two_updates(10.0)
    assert compiled._cache_size() == programs
    assert bool(one.finite)
    assert (one.learner.critic.trunk.stack[0].weight != other.learner.critic.trunk.stack[0].weight).any()
