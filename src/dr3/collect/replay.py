"""`dr3 data collect dqn`: run the online agent to its end, safely, and make its log into a table."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from dr3.collect.going import going, newest
from dr3.collect.online_dqn import MINATAR_DQN, Collection, Schedule, advance, start
from dr3.collect.unfinished import asked_online, check_online, collection, folder_beside
from dr3.data import DiscreteActions, Frames, Transitions, monte_carlo_returns, write_npz
from dr3.envs import CompiledWorld, minatar
from dr3.errors import UserError
from dr3.methods import DQN
from dr3.runs.checkpoints import Checkpoints

SECONDS_PER_CHUNK = 2.0


def collect_dqn(
    env: str | CompiledWorld,
    *,
    steps: int,
    out: str | Path,
    seed: int = 0,
    method: DQN = MINATAR_DQN,
    schedule: Schedule = Schedule(),  # noqa: B008 (frozen)
    progress: bool = True,
) -> Transitions:
    """Train a DQN online for `steps` steps (of all copies of the world together) and write its whole replay to `out`.

    What was seen so far is kept beside `out` while it runs. Ctrl-C or SIGTERM saves and stops, the same call goes on
    from there, and a run that was stopped or killed ends with the same file as one that was not. A file that is there
    already is not written over.

    Rows of the table: the copies' episodes in the order in which they ended (those still going on at the end are cut
    there, and last). So an episode's rows are together, and early rows are early experience, to within the steps that
    were made while an episode lasted.
    """
    world = minatar(env) if isinstance(env, str) else env
    path = Path(out)
    schedule.check()
    check_online(path, steps=steps, seed=seed, method=method)
    if path.suffix != ".npz":
        raise UserError(f"{path}: a replay is written as .npz; give the file that ending.")
    length = -(-steps // schedule.environments)
    folder = folder_beside(path)
    asked = asked_online(world.name, steps=steps, seed=seed, method=method, schedule=schedule)
    with collection(folder, asked, path):
        now = _run(Checkpoints(folder), world, length, seed, method, schedule, progress)
        table = to_transitions(now, world, steps=steps, discount=float(method.discount), seed=seed)
        write_npz(path, table)
    return table


def _run(
    states: Checkpoints, world: CompiledWorld, length: int, seed: int, method: DQN, schedule: Schedule, show: bool
) -> Collection:
    traced, number = jax.tree.map(jnp.asarray, (method, np.uint32(seed)))
    now = start(traced, number, world=world, length=length, schedule=schedule)
    if (kept := newest(states, now)) is not None:
        now = jax.tree.map(jnp.array, kept)
    copies, made, chunk = schedule.environments, int(now.time), 64
    with going(f"dqn in {world.name}", made * copies, length * copies, show=show) as progress:
        while made < length:
            began = time.monotonic()
            made = min(length, made + chunk)
            now = jax.block_until_ready(advance(traced, number, now, jnp.int32(made), world=world, schedule=schedule))
            seconds = time.monotonic() - began
            save = partial(states.save, made, now, keep=1)
            progress.after(made * copies, note=partial(_recent, now, made), save=save)
            chunk = int(np.clip(chunk * SECONDS_PER_CHUNK / max(seconds, 1e-9), max(1, chunk // 4), 4 * chunk))
    return now


def to_transitions(now: Collection, world: CompiledWorld, *, steps: int, discount: float, seed: int) -> Transitions:
    """The log as a table, cut to `steps` rows at most (pauses at time-outs are no rows)."""
    log = jax.tree.map(np.asarray, now.log)
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

    copy, moment, cut, last, episodes = copy[order], moment[order], cut[order], last[order], rank[episode[order]]
    terminals = log.terminals[moment, copy]
    timeouts = log.timeouts[moment, copy] | cut
    timeouts[-1] |= not terminals[-1]
    actions = log.actions[moment, copy].astype(np.int32)
    goes_on = np.append(episodes[1:] == episodes[:-1], False)
    rewards = log.rewards[moment, copy]
    frames = log.frames.reshape((length + 1) * copies, -1)
    following = np.where(terminals, moment, moment + 1)
    return Transitions(
        observations=Frames(frames, (moment * copies + copy).astype(np.int32), bits=world.observation_shape),
        actions=actions,
        rewards=rewards,
        next_observations=Frames(frames, (following * copies + copy).astype(np.int32), bits=world.observation_shape),
        terminals=terminals,
        timeouts=timeouts,
        next_actions=np.where(goes_on, np.append(actions[1:], 0), 0).astype(np.int32),
        next_action_known=goes_on,
        returns=monte_carlo_returns(rewards, episodes, discount),
        episodes=episodes.astype(np.int32),
        action_space=DiscreteActions(world.actions),
        returns_discount=discount,
        name=f"{world.name.replace('/', '-')}-dqn-{seed}",
        world=world.name,
    )


def _recent(now: Collection, made: int, steps: int = 512) -> str:
    """The mean return of episodes that ended lately."""
    returns = np.asarray(now.log.returns[max(0, made - steps) : made])
    ended = returns[~np.isnan(returns)]
    return f", recent mean return {ended.mean():.2f}" if len(ended) else ""
