"""Logged data from the gridworlds (appendix A.6: 256 transitions)."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from dr3.data.transitions import DiscreteActions, Transitions, monte_carlo_returns
from dr3.envs.gridworld import ACTIONS, Gridworld
from dr3.envs.gridworld_policies import behavior_policy
from dr3.errors import UserError
from dr3.seeds import check_seed

MOST_STEPS = 10**8  # some gigabytes; its worlds have 256 states


def sample_gridworld(
    world: Gridworld, *, size: int = 256, behavior: str = "mixed", seed: int = 0, discount: float = 0.95
) -> Transitions:
    """The first `size` steps of whole episodes of the behaviour policy ("mixed", "random" or "optimal").

    Episodes start at `world.start` and are cut by the time limit, which is a time-out and never a terminal. The task
    goes on beyond that limit, which only measures it: so at a time-out a' is the behaviour policy's own draw at s',
    logged although it is not carried out, and SARSA and TD learn from the same rows. The last episode is acted to its
    end before the table is cut, so that its rows keep their full Monte-Carlo returns.

    `discount` is used twice: for what counts as optimal, and for the returns.

    Args:
        world: The gridworld.
        size: How many steps.
        behavior: The policy that acts: mixed, random or optimal.
        seed: Everything random follows from it.
        discount: γ of the returns, and of what is optimal.
    """
    # Not by `dr3.hyperparameters`, which loads JAX: `dr3 verify` reads data without it.
    if not (isinstance(size, Real) and math.isfinite(size) and size == int(size)):
        raise UserError(f"size must be a whole number, not {size!r}.")
    size = int(size)
    if size < 1:
        raise UserError(f"size must be at least 1, not {size}.")
    if size > MOST_STEPS:
        raise UserError(f"The size of a data set from a gridworld can be {MOST_STEPS:,} steps at most, not {size:,}.")
    random = np.random.default_rng(check_seed(seed))
    policy = behavior_policy(world, behavior, discount=discount)
    count = -(-size // world.horizon)  # episodes, rounded up
    states, actions = _act(world, policy, count, random)  # each (count, horizon + 1)

    now, following = states[:, :-1].ravel(), states[:, 1:].ravel()
    rewards = world.rewards[now].astype(np.float32)
    episodes = np.repeat(np.arange(count, dtype=np.int32), world.horizon)
    timeouts = np.zeros((count, world.horizon), np.bool_)
    timeouts[:, -1] = True
    whole = Transitions(
        observations=world.observations[now],
        actions=actions[:, :-1].ravel(),
        rewards=rewards,
        next_observations=world.observations[following],
        terminals=np.zeros(len(now), np.bool_),
        timeouts=timeouts.ravel(),
        next_actions=actions[:, 1:].ravel(),
        next_action_known=np.ones(len(now), np.bool_),
        returns=monte_carlo_returns(rewards, episodes, discount),
        episodes=episodes,
        action_space=DiscreteActions(ACTIONS),
        returns_discount=discount,
        next_behavior=policy[following].astype(np.float32),
        name=_name(world, size, behavior, seed),
        world=world.word,
    )
    return whole.rows(slice(size))


def _name(world: Gridworld, size: int, behavior: str, seed: int) -> str:
    """Whatever is not usual is in it: runs on data of one name are taken for runs on the same data."""
    unusual = [behavior] * (behavior != "mixed") + [f"seed{seed}"] * (seed != 0)
    return "-".join([world.word.replace(":", "-"), str(size), *unusual])


def _act(
    world: Gridworld, policy: NDArray[np.float64], count: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """States and actions of `count` episodes; the last column is s' and the a' drawn there, when the time is up."""
    states = np.empty((count, world.horizon + 1), np.int64)
    actions = np.empty((count, world.horizon + 1), np.int32)
    for episode in range(count):
        state = world.start
        for step in range(world.horizon + 1):
            action = int(random.choice(ACTIONS, p=policy[state]))
            states[episode, step], actions[episode, step] = state, action
            state = world.step(state, action, random)
    return states, actions
