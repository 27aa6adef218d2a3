"""A small Q-learning run to hold the theory against: DQN on the paper's 256 gridworld transitions, in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from dr3.data import Transitions, load
from dr3.data.batch import Batch
from dr3.methods import DQN, Spec
from dr3.training.loop import advance, begin

GAMMA = 0.95


class Snapshot(NamedTuple):
    """A checkpoint of the run."""

    step: int
    critic: Any  # weights as numpy arrays
    phi: NDArray[np.float32]  # (n, width) features of s
    phi_next: NDArray[np.float32]  # (n, width) features of s'
    next_actions: NDArray[np.integer]  # (n,) greedy a' at s'


def q_learning(
    steps: list[int], *, hidden: tuple[int, ...], batch_size: int, seed: int
) -> tuple[DQN, Transitions, list]:
    """The method, the data, and a `Snapshot` at each of the given steps."""
    method = DQN(discount=GAMMA, learning_rate=1e-3, hidden=hidden, target_period=100, batch_size=batch_size)
    data = load("grid16smoothobs", discount=GAMMA)
    snapshots = []
    with jax.enable_x64(False):  # training is single precision, whoever asks for it
        table = Batch.of(data)
        progress = begin(method, jnp.asarray(seed), Spec.of(data))
        for step in steps:
            progress = advance(method, None, jnp.asarray(seed), progress, table, jnp.asarray(step))
            critic = method.model(progress.learner)
            found = (
                critic,
                critic.features(table.observations),
                critic.features(table.next_observations),
                method.act(critic, table.next_observations),
            )
            snapshots.append(Snapshot(step, *jax.tree.map(np.asarray, found)))
    return method, data, snapshots
