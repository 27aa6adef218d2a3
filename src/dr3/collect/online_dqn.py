"""A DQN that learns by acting in a compiled world, and the log of everything it saw: the replay of section 5.

Everything is one compiled program: copies of the world side by side, the replay buffer, the updates. The log *is* the
replay buffer: frames are kept once and as bits, so a million steps of MinAtar are some 50 to 125 MB.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dr3.collect.unfinished import check_schedule
from dr3.data.batch import Batch
from dr3.data.frames import Frames
from dr3.data.transitions import DiscreteActions
from dr3.envs import CompiledWorld
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.methods import DQN, Spec
from dr3.training.rollouts import keep_where

# MinAtar's own DQN (Young and Tian, 2019), with Adam in place of RMSProp.
MINATAR_DQN = DQN(
    learning_rate=2.5e-4, adam_epsilon=3.125e-4, batch_size=32, hidden=(128,), error="huber", target_period=250
)


@hyperparameters
@dataclass(frozen=True)
class Schedule:
    """How the agent explores, and how often it learns."""

    environments: int = 16
    """Copies of the world that are acted in side by side."""

    steps_per_update: int = 4
    """Steps of all copies together for each gradient step; it must divide their number."""

    buffer: int = 100_000
    """Updates draw their rows from so many of the newest steps."""

    warmup: int = 5_000
    """Steps before the first update."""

    epsilon: float = 0.1
    """Probability of a random action in the end."""

    epsilon_steps: float = 100_000.0
    """Steps over which that probability falls, in a line, from 1."""

    limit: int = 5_000
    """Steps after which an episode that is not over is cut: a time-out."""

    def check(self) -> None:
        check_schedule(self, "environments", "steps_per_update", "buffer", "limit", probability="epsilon")
        if self.environments % self.steps_per_update:
            raise UserError(
                f"steps_per_update is {self.steps_per_update}, which does not divide environments, {self.environments}."
            )
        if self.buffer < self.environments:
            raise UserError(f"buffer is {self.buffer}, less than one step of {self.environments} environments.")


class Log(NamedTuple):
    """What happened, by (time, copy). Frame t is what action t was chosen from, so there is one more of them."""

    frames: Array  # (T + 1, E, bytes) uint8
    actions: Array  # (T, E) uint8
    rewards: Array  # (T, E) float32
    terminals: Array  # (T, E) bool
    timeouts: Array  # (T, E) bool
    pauses: Array  # (T, E) bool: no step; the frame is the state that a time-out had reached
    returns: Array  # (T, E) float32: of the episode that ended here, NaN elsewhere


class Collection(NamedTuple):
    """Where the agent stands."""

    learner: Any
    worlds: Any  # states of all copies
    observations: Array  # (E, *shape)
    age: Array  # (E,) int32: steps made in this episode
    so_far: Array  # (E,) float32: return of this episode
    time: Array  # () int32: steps made by each copy
    log: Log


@partial(jax.jit, static_argnames=("world", "length", "schedule"))
def start(method: DQN, seed: Array, *, world: CompiledWorld, length: int, schedule: Schedule) -> Collection:
    """Before the first step, with room for `length` steps of each copy."""
    copies = schedule.environments
    key = jax.random.key(seed)
    spec = Spec(world.observation_shape, DiscreteActions(world.actions))
    worlds, observations = jax.vmap(world.reset)(jax.random.split(jax.random.fold_in(key, 1), copies))
    first = _pack(observations)
    grid = (length, copies)
    log = Log(
        frames=jnp.zeros((length + 1, *first.shape), jnp.uint8).at[0].set(first),
        actions=jnp.zeros(grid, jnp.uint8),
        rewards=jnp.zeros(grid, jnp.float32),
        terminals=jnp.zeros(grid, bool),
        timeouts=jnp.zeros(grid, bool),
        pauses=jnp.zeros(grid, bool),
        returns=jnp.full(grid, jnp.nan, jnp.float32),
    )
    return Collection(
        learner=method.init(spec, jax.random.fold_in(key, 0)),
        worlds=worlds,
        observations=observations,
        age=jnp.zeros(copies, jnp.int32),
        so_far=jnp.zeros(copies, jnp.float32),
        time=jnp.zeros((), jnp.int32),
        log=log,
    )


@partial(jax.jit, static_argnames=("world", "schedule"), donate_argnames="now")
def advance(
    method: DQN, seed: Array, now: Collection, stop: Array, *, world: CompiledWorld, schedule: Schedule
) -> Collection:
    """Act and learn until each copy has made `stop` steps. All chance is a function of (seed, time)."""
    streams = [jax.random.fold_in(jax.random.key(seed), number) for number in (2, 3)]

    def one_step(now: Collection) -> Collection:
        acting, learning = (jax.random.fold_in(stream, now.time) for stream in streams)
        now = _act(method, now, acting, world, schedule)
        ready = now.time * schedule.environments >= schedule.warmup
        learner = lax.cond(
            ready, lambda now: _learn(method, now, learning, world, schedule), lambda now: now.learner, now
        )
        return now._replace(learner=learner)

    return lax.while_loop(lambda now: now.time < stop, one_step, now)


def _act(method: DQN, now: Collection, key: Array, world: CompiledWorld, schedule: Schedule) -> Collection:
    """One step of every copy, and its row of the log.

    Where the next row of a copy would be a new episode after a time-out, the state that the old one had reached must be
    in the log first: that copy pauses for a step, whose frame it is.
    """
    copies = schedule.environments
    of_choice, of_action, of_world, of_reset = jax.random.split(key, 4)
    pausing = now.age == schedule.limit
    share = jnp.clip(now.time * copies / schedule.epsilon_steps, 0.0, 1.0)
    explore = jax.random.uniform(of_choice, (copies,)) < 1 + share * (schedule.epsilon - 1)
    greedy = method.act(method.critic(now.learner), now.observations)
    actions = jnp.where(explore, jax.random.randint(of_action, (copies,), 0, world.actions), greedy)

    after = jax.vmap(world.step)(now.worlds, actions, jax.random.split(of_world, copies))
    rewards = jnp.where(pausing, 0.0, after.reward)
    terminals = after.terminal & ~pausing
    age, so_far = now.age + 1, now.so_far + rewards
    timeouts = (age == schedule.limit) & ~terminals

    fresh = jax.vmap(world.reset)(jax.random.split(of_reset, copies))
    restart = terminals | pausing
    worlds, observations = keep_where(restart, fresh, (after.state, after.observation))
    time, log = now.time, now.log
    log = Log(
        frames=log.frames.at[time + 1].set(_pack(observations)),
        actions=log.actions.at[time].set(actions.astype(jnp.uint8)),
        rewards=log.rewards.at[time].set(rewards),
        terminals=log.terminals.at[time].set(terminals),
        timeouts=log.timeouts.at[time].set(timeouts),
        pauses=log.pauses.at[time].set(pausing),
        returns=log.returns.at[time].set(jnp.where(terminals | timeouts, so_far, jnp.nan)),
    )
    return Collection(
        learner=now.learner,
        worlds=worlds,
        observations=observations,
        age=jnp.where(restart, 0, age),
        so_far=jnp.where(restart, 0.0, so_far),
        time=time + 1,
        log=log,
    )


def _learn(method: DQN, now: Collection, key: Array, world: CompiledWorld, schedule: Schedule) -> Any:
    """The updates that are due after one step of all copies, and the target network's move if it is."""
    updates = schedule.environments // schedule.steps_per_update

    def update(number: Array, learner: Any) -> Any:
        of_rows, of_update = jax.random.split(jax.random.fold_in(key, number))
        return method.update(learner, _draw(method, now, of_rows, world, schedule), of_update, None)[0]

    learner = lax.fori_loop(0, updates, update, now.learner)
    done = now.time * updates
    due = done // method.target_period > (done - updates) // method.target_period
    return lax.cond(due, method.synchronise, lambda same: same, learner)


def _draw(method: DQN, now: Collection, key: Array, world: CompiledWorld, schedule: Schedule) -> Batch:
    """Rows of the newest steps, with replacement. A pause is no row: the time-out before it is taken instead."""
    copies = schedule.environments
    newest = jnp.minimum(now.time, schedule.buffer // copies)
    of_time, of_copy = jax.random.split(key)
    time = now.time - 1 - jax.random.randint(of_time, (method.batch_size,), 0, newest)
    copy = jax.random.randint(of_copy, (method.batch_size,), 0, copies)
    time = time - (now.log.pauses[time, copy] & (time > 0))
    log = now.log
    stored = log.frames.reshape(-1, log.frames.shape[-1])

    def look(time: Array) -> Any:
        return Frames(stored, time * copies + copy, bits=world.observation_shape)[:]

    actions = log.actions[time, copy].astype(jnp.int32)
    return Batch(
        observations=look(time),
        actions=actions,
        rewards=log.rewards[time, copy],
        next_observations=look(time + 1),
        terminals=log.terminals[time, copy].astype(jnp.float32),
        next_actions=jnp.zeros_like(actions),
        returns=jnp.zeros(method.batch_size),
        next_behavior=None,
    )


def _pack(observations: Array) -> Array:
    return jnp.packbits(observations.reshape(len(observations), -1), axis=-1)
