"""A SAC that learns by acting in a Gymnasium world: the replay and the updates, compiled, beside a world that is not.

The world is stepped on the host with the policy of numpy arrays (a compiled call for one observation costs more than
the arithmetic in it); after every few steps as many updates run in one compiled call.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dr3.collect.rows import Floats, Rows
from dr3.collect.unfinished import check_schedule
from dr3.data.batch import Batch
from dr3.methods import SAC
from dr3.methods.continuous import Learner
from dr3.networks import GaussianPolicy
from dr3.networks.gaussian_policy import LARGEST_MEAN, LOG_STD
from dr3.training.loop import draw_rows, stream


@dataclass(frozen=True)
class Schedule:
    """How the agent explores, and how often it learns."""

    warmup: int = 5_000
    """Steps of random actions before the first update."""

    steps_per_update: int = 1
    """Steps for each gradient step after that."""

    block: int = 50
    """Steps that are made with one policy before the updates that are due for them."""

    def check(self) -> None:
        check_schedule(self, "warmup", "steps_per_update", "block")

    def updates_after(self, steps: int) -> int:
        """Gradient steps that are due once so many steps have been made."""
        return max(0, steps - self.warmup) // self.steps_per_update


@partial(jax.jit, donate_argnames=("learner", "replay"))
def learn(
    method: SAC, seed: Array, learner: Learner, replay: Rows, block: Rows, made: Array, count: Array, stop: Array
) -> tuple[Learner, Rows]:
    """Add the first `count` rows of `block` to the `made` ones of the replay, then update until there were `stop`.

    What a block holds beyond `count` is written too, and is what the next block writes over. All chance is a function
    of (seed, number of the update).
    """
    replay = jax.tree.map(lambda all_rows, new: lax.dynamic_update_slice_in_dim(all_rows, new, made, 0), replay, block)

    def update(learner: Learner) -> Learner:
        number = learner.updates
        batch = _take(replay, draw_rows(seed, number, method.batch_size, made + count))
        learner, _ = method.update(learner, batch, jax.random.fold_in(stream(seed, 2), number), None)
        due = learner.updates % method.target_period == 0
        return lax.cond(due, method.synchronise, lambda same: same, learner)

    return lax.while_loop(lambda learner: learner.updates < stop, update, learner), replay


def _take(replay: Rows, rows: Array) -> Batch:
    actions = replay.actions[rows]
    return Batch(
        observations=replay.observations[rows],
        actions=actions,
        rewards=replay.rewards[rows],
        next_observations=replay.next_observations[rows],
        terminals=replay.terminals[rows].astype(jnp.float32),
        next_actions=jnp.zeros_like(actions),
        returns=jnp.zeros(len(rows)),
        next_behavior=None,
    )


class HostPolicy:
    """A Gaussian policy in numpy, for one observation at a time; None acts at random."""

    def __init__(self, policy: GaussianPolicy | None, size: int, low: float, high: float) -> None:
        layers = () if policy is None else (*policy.trunk.layers().values(), policy.head)
        self.layers = [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in layers]
        self.size, self.centre, self.half = size, 0.5 * (high + low), 0.5 * (high - low)

    def __call__(self, observation: Floats, noise: np.random.Generator) -> Floats:
        if not self.layers:
            unit = noise.uniform(-1, 1, self.size)
        else:
            x = observation
            for weight, bias in self.layers[:-1]:
                x = np.maximum(x @ weight + bias, 0)
            weight, bias = self.layers[-1]
            mean, log_std = np.split(x @ weight + bias, 2)
            spread = np.exp(np.clip(log_std, *LOG_STD))
            unit = np.tanh(np.clip(mean, -LARGEST_MEAN, LARGEST_MEAN) + spread * noise.standard_normal(self.size))
        action = self.centre + self.half * unit
        return np.clip(action, self.centre - self.half, self.centre + self.half).astype(np.float32)
