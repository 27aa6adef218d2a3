"""`dr3 data collect sac`: run the online agent to its end, safely, and make its log into tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from dr3.collect.cuts import CUTS, Snapshots, cut_table
from dr3.collect.going import going, newest
from dr3.collect.gymnasium_world import World
from dr3.collect.online_sac import HostPolicy, Schedule, learn
from dr3.collect.rows import Rows
from dr3.collect.unfinished import asked_online, check_online, check_table, collection, folder_beside
from dr3.data import Transitions, write
from dr3.errors import UserError
from dr3.methods import SAC, Spec
from dr3.runs.checkpoints import Checkpoints
from dr3.training.loop import begin

SNAPSHOTS = 20  # policies kept on the way, of which the cuts take theirs
RECENT = 10  # episodes whose mean return says how good the agent is


class Collection(NamedTuple):
    """Where the agent stands, between two episodes."""

    learner: Any
    replay: Rows  # on the device
    made: NDArray[np.int64]  # () steps
    episode: NDArray[np.int64]  # () episodes
    returns: NDArray[np.float64]  # (RECENT,) of the last episodes, the latest last; NaN before there were so many
    snapshots: Snapshots


def collect_sac(
    env: str,
    *,
    steps: int,
    out: str | Path,
    seed: int = 0,
    method: SAC = SAC(),  # noqa: B008 (frozen)
    schedule: Schedule = Schedule(),  # noqa: B008 (frozen)
    cuts: Sequence[str] = (),
    cut_steps: int = 100_000,
    progress: bool = True,
) -> Transitions:
    """Train a SAC online for `steps` steps in a Gymnasium world and write its whole replay ("full-replay") to `out`.

    `out` is an .npz file, or an .hdf5 file in D4RL's layout. `cuts` of D4RL's kind are written beside it in the same
    format, as OUT-medium.hdf5 and so on: see `dr3.collect.cuts`.

    What was seen so far is kept beside `out` while it runs, as it was at the end of an episode. Ctrl-C or SIGTERM waits
    for one, saves and stops; the same call goes on from there, and a run that was stopped or killed ends with the same
    files as one that was not. A file that is there already is not written over.
    """
    path = Path(out)
    folder = folder_beside(path)
    files = {cut: path.with_name(f"{path.stem}-{cut}{path.suffix}") for cut in cuts}
    _check(path, steps, seed, method, schedule, cuts, cut_steps)
    world = World(env, seed)
    asked = asked_online(env, steps=steps, seed=seed, method=method, schedule=schedule)
    asked["cuts"] = dict.fromkeys(cuts, cut_steps)
    with collection(folder, asked, path, *files.values()):
        now = _run(Checkpoints(folder), world, steps, seed, method, schedule, progress)
        columns = {column: np.asarray(rows)[:steps] for column, rows in now.replay._asdict().items()}
        table = world.table(columns, name=f"{env.lower()}-sac-{seed}", discount=float(method.discount))
        for cut, file in files.items():
            if not file.exists():
                policy = now.learner.critic.policy
                write(file, cut_table(cut, now.snapshots, policy, table, world, cut_steps, progress))
        write(path, table)
        world.close()
    return table


def _check(
    path: Path, steps: int, seed: int, method: SAC, schedule: Schedule, cuts: Sequence[str], cut_steps: int
) -> None:
    schedule.check()
    check_online(path, steps=steps, seed=seed, method=method)
    check_table(path)
    if cut_steps < 1:
        raise UserError(f"cut_steps must be at least 1, not {cut_steps}.")
    for cut in cuts:
        if cut not in CUTS:
            raise UserError(f"There is no cut {cut!r}; there are {', '.join(CUTS)}.")


def _run(
    states: Checkpoints, world: World, steps: int, seed: int, method: SAC, schedule: Schedule, show: bool
) -> Collection:
    traced, number = jax.tree.map(jnp.asarray, (method, np.uint32(seed)))
    now = _resume(states, _start(traced, number, world, steps, schedule))
    block = Rows.empty(schedule.block, world.size, world.actions.size)
    with going(f"sac in {world.name}", int(now.made), steps, show=show) as progress:
        while now.made < steps:
            now = _one_episode(now, traced, number, world, block, steps, schedule)
            made = int(now.made)
            progress.after(made, note=partial(_recent, now.returns), save=partial(states.save, made, now, keep=1))
    return now


def _start(method: SAC, seed: Any, world: World, steps: int, schedule: Schedule) -> Collection:
    learner = begin(method, seed, Spec((world.size,), world.actions)).learner
    return Collection(
        learner=jax.tree.map(jnp.array, learner),  # copies: critics and target are one array at first
        replay=jax.tree.map(jnp.asarray, Rows.empty(steps + schedule.block, world.size, world.actions.size)),
        made=np.zeros((), np.int64),
        episode=np.zeros((), np.int64),
        returns=np.full(RECENT, np.nan),
        snapshots=Snapshots.empty(SNAPSHOTS, learner.critic.policy),
    )


def _one_episode(
    now: Collection, method: SAC, seed: Any, world: World, block: Rows, steps: int, schedule: Schedule
) -> Collection:
    """Act and learn to the end of an episode, or of the steps."""
    learner, replay, snapshots, made = now.learner, now.replay, now.snapshots, int(now.made)
    space, total, over = world.actions, 0.0, False
    while made < steps and not over:
        random = made < schedule.warmup
        policy = HostPolicy(None if random else learner.critic.policy, space.size, space.low, space.high)
        limit = min(schedule.block, (schedule.warmup if random else steps) - made, steps - made)
        count, over = world.act(policy, block, episode=int(now.episode), step=made, limit=limit)
        total += float(block.rewards[:count].sum())
        stop = schedule.updates_after(made + count)
        # Copies: the call comes back before its work is done, and may read the arrays it was given until then.
        rows, numbers = jax.tree.map(np.copy, block), (jnp.int32(number) for number in (made, count, stop))
        learner, replay = learn(method, seed, learner, replay, rows, *numbers)
        made += count
        snapshots = snapshots.with_due(made, steps, learner.critic.policy, now.returns)
    return Collection(
        learner=learner,
        replay=replay,
        made=np.asarray(made),
        episode=now.episode + 1,
        returns=np.append(now.returns[1:], total),
        snapshots=snapshots,
    )


def _resume(states: Checkpoints, fresh: Collection) -> Collection:
    """The newest whole state beside the file."""
    kept: Collection | None = newest(states, fresh)
    if kept is None:
        return fresh
    learner, replay = jax.tree.map(jnp.array, (kept.learner, kept.replay))
    return kept._replace(learner=learner, replay=replay)


def _recent(returns: NDArray[np.float64]) -> str:
    known = returns[~np.isnan(returns)]
    return f", recent mean return {known.mean():.0f}" if len(known) else ""
