"""A DQN that learns by acting in a compiled world, and the log of everything it saw: the replay of section 5.

Everything is one compiled program: copies of the world side by side, the replay buffer, the updates. The log *is* the
replay buffer: frames are kept once and as bits, so a million steps of MinAtar are some 50 to 125 MB.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dr3.collect.loop import OnlineAgent, check_schedule, collect, online_batch
from dr3.data import DiscreteActions, Frames, Transitions, assemble, write_npz
from dr3.data.batch import Batch
from dr3.envs import CompiledWorld, minatar
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters
from dr3.methods import DQN, Spec
from dr3.regularizers import Regularizer
from dr3.training.rollouts import keep_where

SECONDS_PER_CHUNK = 2.0
# MinAtar's own DQN (Young and Tian, 2019), with Adam in place of RMSProp.
MINATAR_DQN = DQN(
    learning_rate=2.5e-4, adam_epsilon=3.125e-4, batch_size=32, hidden=(128,), error="huber", target_period=250
)


@hyperparameters
@dataclass(frozen=True)
class DQNSchedule:
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


class StepLog(NamedTuple):
    """What happened, by (time, copy). Frame t is what action t was chosen from, so there is one more of them."""

    frames: Array  # (T + 1, E, bytes) uint8
    actions: Array  # (T, E) uint8
    rewards: Array  # (T, E) float32
    terminals: Array  # (T, E) bool
    timeouts: Array  # (T, E) bool
    pauses: Array  # (T, E) bool: no step; the frame is the state that a time-out had reached
    returns: Array  # (T, E) float32: of the episode that ended here, NaN elsewhere


class DQNState(NamedTuple):
    """Where the agent stands."""

    learner: Any
    worlds: Any  # states of all copies
    observations: Array  # (E, *shape)
    age: Array  # (E,) int32: steps made in this episode
    so_far: Array  # (E,) float32: return of this episode
    time: Array  # () int32: steps made by each copy
    log: StepLog


def collect_dqn(
    env: str | CompiledWorld,
    *,
    steps: int,
    out: str | Path,
    seed: int = 0,
    method: DQN = MINATAR_DQN,
    regularizer: Regularizer | None = None,
    schedule: DQNSchedule = DQNSchedule(),  # noqa: B008 (frozen)
    progress: bool = True,
) -> Transitions:
    """Train a DQN online for `steps` steps (of all copies of the world together) and write its whole replay to `out`.

    What was seen so far is kept beside `out` while it runs. Ctrl-C or SIGTERM saves and stops, the same call goes on
    from there, and a run that was stopped or killed ends with the same file as one that was not. A file that is there
    already is not written over.

    Rows of the table: the copies' episodes in the order in which they ended (those still going on at the end are cut
    there, and last). So an episode's rows are together, and early rows are early experience, to within the steps that
    were made while an episode lasted.

    Args:
        env: The name of the world.
        steps: How many steps to take in it, of all copies together.
        out: The file (or folder) to write.
        seed: Everything random follows from it.
        method: The agent's hyperparameters.
        regularizer: A term that is added to the agent's loss, such as `dr3.DR3(0.01)`; None adds nothing.
        schedule: How it explores and when it learns.
        progress: Show how far it is, on stderr.
    """
    world = minatar(env) if isinstance(env, str) else env
    learning: Any = {"method": method, "regularizer": regularizer, "schedule": schedule}
    return collect(CompiledAgent(world, steps=steps, out=out, seed=seed, **learning), progress=progress)


class CompiledAgent(OnlineAgent):
    """The compiled program in chunks of about two seconds."""

    state: DQNState

    def __init__(self, world: CompiledWorld, *, steps: int, schedule: DQNSchedule, **settings: Any) -> None:
        super().__init__("dqn", world, steps=steps, schedule=schedule, endings=(".npz",), **settings)
        self.length = -(-steps // schedule.environments)  # of each copy
        self.total = self.length * schedule.environments
        self.chunk = 64  # steps of each copy, as many as take SECONDS_PER_CHUNK

    def start(self) -> DQNState:
        return start(self.method, self.number, world=self.world, length=self.length, schedule=self.schedule)

    def made(self) -> int:
        return int(self.state.time) * self.schedule.environments

    def advance(self) -> int:
        began, chunk = time.monotonic(), self.chunk
        stop = jnp.int32(min(self.length, int(self.state.time) + chunk))
        learning = self.method, self.regularizer, self.number
        self.state = advance(*learning, self.state, stop, world=self.world, schedule=self.schedule)
        made = self.made()  # waits until it is done
        seconds = max(time.monotonic() - began, 1e-9)
        self.chunk = int(np.clip(chunk * SECONDS_PER_CHUNK / seconds, max(1, chunk // 4), 4 * chunk))
        return made

    def note(self) -> str:
        now = int(self.state.time)
        returns = np.asarray(self.state.log.returns[max(0, now - 512) : now])
        ended = returns[~np.isnan(returns)]
        return f", recent mean return {ended.mean():.2f}" if len(ended) else ""

    def write(self) -> Transitions:
        table = to_transitions(self.state, self.world, steps=self.steps, discount=self.discount, seed=self.seed)
        write_npz(self.path, table)
        return table


@partial(jax.jit, static_argnames=("world", "length", "schedule"))
def start(method: DQN, seed: Array, *, world: CompiledWorld, length: int, schedule: DQNSchedule) -> DQNState:
    """Before the first step, with room for `length` steps of each copy."""
    copies = schedule.environments
    key = jax.random.key(seed)
    spec = Spec(world.observation_shape, DiscreteActions(world.actions))
    worlds, observations = jax.vmap(world.reset)(jax.random.split(jax.random.fold_in(key, 1), copies))
    first = _pack(observations)
    grid = (length, copies)
    log = StepLog(
        frames=jnp.zeros((length + 1, *first.shape), jnp.uint8).at[0].set(first),
        actions=jnp.zeros(grid, jnp.uint8),
        rewards=jnp.zeros(grid, jnp.float32),
        terminals=jnp.zeros(grid, bool),
        timeouts=jnp.zeros(grid, bool),
        pauses=jnp.zeros(grid, bool),
        returns=jnp.full(grid, jnp.nan, jnp.float32),
    )
    return DQNState(
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
    method: DQN,
    regularizer: Regularizer | None,
    seed: Array,
    now: DQNState,
    stop: Array,
    *,
    world: CompiledWorld,
    schedule: DQNSchedule,
) -> DQNState:
    """Act and learn until each copy has made `stop` steps. All chance is a function of (seed, time)."""
    streams = [jax.random.fold_in(jax.random.key(seed), number) for number in (2, 3)]

    def one_step(now: DQNState) -> DQNState:
        acting, learning = (jax.random.fold_in(stream, now.time) for stream in streams)
        now = _act(method, now, acting, world, schedule)
        ready = now.time * schedule.environments >= schedule.warmup

        def learned(now: DQNState) -> Any:
            return _learn(method, regularizer, now, learning, world, schedule)

        return now._replace(learner=lax.cond(ready, learned, lambda now: now.learner, now))

    return lax.while_loop(lambda now: now.time < stop, one_step, now)


def _act(method: DQN, now: DQNState, key: Array, world: CompiledWorld, schedule: DQNSchedule) -> DQNState:
    """One step of every copy, and its row of the log.

    Where the next row of a copy would be a new episode after a time-out, the state that the old one had reached must be
    in the log first: that copy pauses for a step, whose frame it is.
    """
    copies = schedule.environments
    of_choice, of_action, of_world, of_reset = jax.random.split(key, 4)
    pausing = now.age == schedule.limit
    share = jnp.clip(now.time * copies / schedule.epsilon_steps, 0.0, 1.0)
    explore = jax.random.uniform(of_choice, (copies,)) < 1 + share * (schedule.epsilon - 1)
    greedy = method.act(method.model(now.learner), now.observations)
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
    log = StepLog(
        frames=log.frames.at[time + 1].set(_pack(observations)),
        actions=log.actions.at[time].set(actions.astype(jnp.uint8)),
        rewards=log.rewards.at[time].set(rewards),
        terminals=log.terminals.at[time].set(terminals),
        timeouts=log.timeouts.at[time].set(timeouts),
        pauses=log.pauses.at[time].set(pausing),
        returns=log.returns.at[time].set(jnp.where(terminals | timeouts, so_far, jnp.nan)),
    )
    return DQNState(
        learner=now.learner,
        worlds=worlds,
        observations=observations,
        age=jnp.where(restart, 0, age),
        so_far=jnp.where(restart, 0.0, so_far),
        time=time + 1,
        log=log,
    )


def _learn(
    method: DQN,
    regularizer: Regularizer | None,
    now: DQNState,
    key: Array,
    world: CompiledWorld,
    schedule: DQNSchedule,
) -> Any:
    """The updates that are due after one step of all copies, and the target network's move if it is."""
    updates = schedule.environments // schedule.steps_per_update

    def update(number: Array, learner: Any) -> Any:
        of_rows, of_update = jax.random.split(jax.random.fold_in(key, number))
        return method.update(learner, _draw(method, now, of_rows, world, schedule), of_update, regularizer)[0]

    learner = lax.fori_loop(0, updates, update, now.learner)
    done = now.time * updates
    due = done // method.target_period > (done - updates) // method.target_period
    return lax.cond(due, method.synchronise, lambda same: same, learner)


def _draw(method: DQN, now: DQNState, key: Array, world: CompiledWorld, schedule: DQNSchedule) -> Batch:
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
    return online_batch(look(time), actions, log.rewards[time, copy], look(time + 1), log.terminals[time, copy])


def _pack(observations: Array) -> Array:
    return jnp.packbits(observations.reshape(len(observations), -1), axis=-1)


def to_transitions(stopped: DQNState, world: CompiledWorld, *, steps: int, discount: float, seed: int) -> Transitions:
    """The log as a table, cut to `steps` rows at most (pauses at time-outs are no rows)."""
    log = jax.tree.map(np.asarray, stopped.log)
    length, copies = log.actions.shape
    # Copy by copy: each copy's rows in time, without its pauses, and where its episodes end.
    copy, moment = np.nonzero(~log.pauses.T)
    ends = (log.terminals | log.timeouts)[moment, copy]
    last = np.append(copy[1:] != copy[:-1], True)  # of its copy
    cut = last & ~ends
    episode = np.cumsum(np.append(0, (ends | last)[:-1]))
    ended_at = moment[ends | last] * 2 + cut[ends | last]  # an episode that is cut comes after all that ended
    rank = np.empty_like(ended_at)
    rank[np.argsort(ended_at, kind="stable")] = np.arange(len(ended_at))
    order = np.argsort(rank[episode], kind="stable")[:steps]

    copy, moment, cut = copy[order], moment[order], cut[order]
    terminals = log.terminals[moment, copy]
    timeouts = log.timeouts[moment, copy] | cut
    timeouts[-1] |= not terminals[-1]
    frames = log.frames.reshape((length + 1) * copies, -1)
    following = np.where(terminals, moment, moment + 1)
    now, then = (
        Frames(frames, (at * copies + copy).astype(np.int32), bits=world.observation_shape)
        for at in (moment, following)
    )
    columns = {
        "observations": now,
        "actions": log.actions[moment, copy].astype(np.int32),
        "rewards": log.rewards[moment, copy],
        "next_observations": then,
        "terminals": terminals,
        "timeouts": timeouts,
        "num_actions": world.actions,
        "world": world.name,
    }
    return assemble(columns, source=world.name, name=f"{world.name}-dqn-{seed}", discount=discount)
