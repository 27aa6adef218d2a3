"""`dr3 data collect dqn --env atari/…`: run the online agent to its end, safely, and write its log."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dr3.collect.emulated_dqn import ATARI_DQN, Agent, AtariSchedule, Log, Place
from dr3.collect.going import going, newest
from dr3.collect.unfinished import asked_online, check_online, collection, folder_beside
from dr3.data import DiscreteActions, Frames, Transitions, monte_carlo_returns, write_dqn_replay, write_npz
from dr3.data.subsets import PARTS
from dr3.envs import EmulatedWorld, atari
from dr3.errors import UserError
from dr3.methods import DQN
from dr3.runs.checkpoints import Checkpoints

RECENT = 20  # episodes whose mean return is shown


def collect_emulated_dqn(
    env: str | EmulatedWorld,
    *,
    steps: int,
    out: str | Path,
    seed: int = 0,
    method: DQN = ATARI_DQN,
    schedule: AtariSchedule = AtariSchedule(),  # noqa: B008 (frozen)
    progress: bool = True,
) -> Transitions:
    """Train a DQN online for `steps` steps of one game and write its whole replay to `out`.

    `out` is a `.npz` file, or else a folder of DQN-replay files, fifty of them (a few less of a short log). Rewards are
    clipped to [-1, 1], as in the public replays. The log lies beside `out` while it runs. Ctrl-C or SIGTERM saves and
    stops, the same call goes on from there, and a run that was stopped or killed ends with the same data as one that
    was not.
    """
    world = atari(env) if isinstance(env, str) else env
    path = Path(out)
    schedule.check()
    check_online(path, steps=steps, seed=seed, method=method)
    if path.suffix not in (".npz", ""):
        raise UserError(f"{path}: a replay is written as .npz, or into a folder; give it that ending, or none.")
    folder = folder_beside(path)
    asked = asked_online(world.name, steps=steps, seed=seed, method=method, schedule=schedule)
    with collection(folder, asked, path):
        log = Log(folder, world, steps)
        _run(Agent(world, log, method, schedule, seed), Checkpoints(folder / "state"), steps, progress)
        table = to_transitions(log, world, discount=float(method.discount), seed=seed)
        if path.suffix:
            write_npz(path, table)
        else:
            _write_folder(folder / "files", log, table)
            (folder / "files").rename(path)
    return table


def _run(agent: Agent, states: Checkpoints, steps: int, show: bool) -> None:
    place = _resume(agent, states)

    def save(place: Place) -> None:
        agent.log.flush()
        states.save(int(place.step), place, keep=2)

    with going(f"dqn in {agent.world.name}", int(place.step), steps, show=show) as progress:
        while place.step < steps:
            place = agent.step(place)
            made = int(place.step)
            progress.after(made, note=partial(_recent, agent.log, made), save=partial(save, place))
    agent.games.close()


def _resume(agent: Agent, states: Checkpoints) -> Place:
    """The newest whole state. What the log holds beyond it is written over, with the same."""
    fresh = agent.start()
    stored: Place | None = newest(states, fresh)
    if stored is None:
        return agent.begin(fresh, 0)
    place = stored._replace(learner=jax.tree.map(jnp.array, stored.learner))
    agent.catch_up(place)
    return place


def to_transitions(log: Log, world: EmulatedWorld, *, discount: float, seed: int) -> Transitions:
    """The log as a table, in the order of time; frames stay where they are. An episode that goes on is cut."""
    rows, terminals, timeouts = np.array(log.rows), np.array(log.terminals), np.array(log.timeouts)
    timeouts[-1] |= not terminals[-1]
    ends = terminals | timeouts
    episodes = np.append(0, np.cumsum(ends[:-1])).astype(np.int32)
    actions, rewards = log.actions.astype(np.int32), np.clip(log.rewards, -1, 1)
    following = np.where(terminals, rows, rows + 1)
    frames: Any = log.frames
    return Transitions(
        observations=Frames(frames, rows.astype(np.int32), stack=world.stack),
        actions=actions,
        rewards=rewards,
        next_observations=Frames(frames, following.astype(np.int32), stack=world.stack),
        terminals=terminals,
        timeouts=timeouts,
        next_actions=np.where(ends, 0, np.append(actions[1:], 0)).astype(np.int32),
        next_action_known=~ends,
        returns=monte_carlo_returns(rewards, episodes, discount),
        episodes=episodes,
        action_space=DiscreteActions(world.actions),
        returns_discount=discount,
        name=f"{world.name.replace('/', '-')}-dqn-{seed}",
        world=world.name,
    )


def _write_folder(path: Path, log: Log, table: Transitions) -> None:
    """As Dopamine's agents wrote it: there, an episode that the clock had cut ended in a terminal like any other."""
    ends = table.terminals | np.append(table.timeouts[:-1], False)
    padded = len(table) + (log.stack - 1) * int(1 + ends[:-1].sum())
    write_dqn_replay(
        path,
        frames=Frames(log.frames, np.array(log.rows)),
        actions=log.actions,
        rewards=table.rewards,
        terminals=ends,
        rows_per_file=-(-padded // PARTS),
        stack=log.stack,
    )


def _recent(log: Log, made: int) -> str:
    ended = np.flatnonzero(log.terminals[:made] | log.timeouts[:made])[-RECENT:]
    return f", mean return of the last {len(ended)} episodes {log.scores[ended].mean():.2f}" if len(ended) else ""
