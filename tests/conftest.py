from __future__ import annotations

import numpy as np
import pytest

from dr3.data.transitions import DiscreteActions, Transitions, monte_carlo_returns


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
