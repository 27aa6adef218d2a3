"""Three rows and two networks whose values are written down here."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data.batch import Batch
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.methods import Spec

# Q(s, a), one row per state.
ONLINE = [[1.0, 2.0], [0.0, 3.0], [0.0, 5.0]]
TARGET = [[10.0, 20.0], [40.0, 30.0], [60.0, 50.0]]


@pytest.fixture
def table() -> Transitions:
    """s0 a0 -> s1; s1 a1 -> s2, and time is up; s2 a0, and the world ends (the next episode's s0 is stored as s')."""
    states = np.eye(3, dtype=np.float32)
    return Transitions(
        observations=states[[0, 1, 2]],
        actions=np.array([0, 1, 0], np.int32),
        rewards=np.array([1, 2, 3], np.float32),
        next_observations=states[[1, 2, 0]],
        terminals=np.array([False, False, True]),
        timeouts=np.array([False, True, False]),
        next_actions=np.array([1, 0, 0], np.int32),
        next_action_known=np.array([True, True, False]),
        returns=np.array([2, 2, 3], np.float32),
        episodes=np.array([0, 0, 1], np.int32),
        action_space=DiscreteActions(2),
        returns_discount=0.5,
        next_behavior=np.array([[0.25, 0.75], [0.5, 0.5], [0.9, 0.1]], np.float32),
        name="three rows",
    )


@pytest.fixture
def known():
    """A method's learner whose critic is `ONLINE` and whose target network is `TARGET`, and its loss on a table.

    Without hidden layers the features are the one-hot state, so the last layer's weights are the table of values.
    """

    def build(method, table):
        method = dataclasses.replace(method, hidden=())
        learner = method.init(Spec.of(table), jax.random.key(0))
        learner = learner._replace(critic=_with_values(learner.critic, ONLINE))
        if learner.target is not None:
            learner = learner._replace(target=_with_values(learner.target, TARGET))
        loss, (backup, info) = method.loss(learner.critic, learner, Batch.of(table), jax.random.key(1))
        return learner, loss, backup, info

    return build


def _with_values(critic, values):
    head = (critic.head.weight, critic.head.bias)
    return eqx.tree_at(lambda c: (c.head.weight, c.head.bias), critic, (jnp.array(values), jnp.zeros_like(head[1])))
