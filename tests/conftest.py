from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest

from dr3.data import assemble
from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions, monte_carlo_returns


@pytest.fixture(scope="session")
def logged() -> Transitions:
    """48 rows in 6 episodes of a made-up world: every other episode ends, the others are cut; every column is there."""
    random = np.random.default_rng(0)
    rows, length, actions = 48, 8, 3
    rewards = random.normal(size=rows).astype(np.float32)
    episodes = np.repeat(np.arange(rows // length, dtype=np.int32), length)
    last = np.arange(rows) % length == length - 1
    terminals = last & (episodes % 2 == 0)
    behavior = random.dirichlet(np.ones(actions), size=rows).astype(np.float32)
    return Transitions(
        observations=random.normal(size=(rows, 4)).astype(np.float32),
        actions=random.integers(actions, size=rows).astype(np.int32),
        rewards=rewards,
        next_observations=random.normal(size=(rows, 4)).astype(np.float32),
        terminals=terminals,
        timeouts=last & ~terminals,
        next_actions=random.integers(actions, size=rows).astype(np.int32),
        next_action_known=~terminals,
        returns=monte_carlo_returns(rewards, episodes, 0.99),
        episodes=episodes,
        action_space=DiscreteActions(actions),
        returns_discount=0.99,
        next_behavior=behavior,
        name="logged",
    )


@pytest.fixture(scope="session")
def logged_continuous(logged) -> Transitions:
    """The same 48 rows with actions of two numbers between -2 and 3."""
    random = np.random.default_rng(1)
    actions, following = random.uniform(-2, 3, size=(2, len(logged), 2)).astype(np.float32)
    return dataclasses.replace(
        logged,
        actions=actions,
        next_actions=np.where(logged.next_action_known[:, None], following, 0).astype(np.float32),
        action_space=ContinuousActions(2, -2.0, 3.0),
        next_behavior=None,
        name="logged-continuous",
    )


@dataclass(frozen=True)
class Corridor:
    """Five cells, seen as one of five booleans; 1 goes right, 0 goes left, and the last cell pays 1 and is the end."""

    name: str = "corridor"
    observation_shape: tuple[int, ...] = (5,)
    actions: int = 2

    def reset(self, key):
        import jax.numpy as jnp

        return jnp.int32(0), jnp.arange(5) == 0

    def step(self, state, action, key):
        import jax.numpy as jnp

        from dr3.envs import Step

        cell = jnp.clip(state + 2 * action - 1, 0, 4).astype(jnp.int32)
        return Step(cell, jnp.arange(5) == cell, (cell == 4).astype(jnp.float32), cell == 4)


@pytest.fixture(scope="session")
def corridor() -> Corridor:
    return Corridor()


@pytest.fixture(scope="session")
def corridor_log() -> Transitions:
    """Straight to the end, then to and fro until the time is up."""
    cells = np.array([0, 1, 2, 3, 0, 1, 0, 1, 2])
    columns = {
        "observations": np.eye(5, dtype=np.bool_)[cells],
        "actions": np.array([1, 1, 1, 1, 1, 0, 1, 1, 0]),
        "rewards": np.array([0, 0, 0, 1, 0, 0, 0, 0, 0], np.float32),
        "terminals": np.array([0, 0, 0, 1, 0, 0, 0, 0, 0], np.bool_),
        "timeouts": np.array([0, 0, 0, 0, 0, 0, 0, 0, 1], np.bool_),
    }
    return assemble(columns, source="corridor", name="corridor")
