"""`dr3 data collect drawers`: scripted episodes on all cores, kept in parts, then made into two files.

Episode n of a file depends on the seed and n alone. So which process acts it, and whether the collection was stopped
and went on, changes nothing.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.collect.drawers_acting import KINDS, Part, act_part, skills_of
from dr3.collect.drawers_skills import PRIOR
from dr3.collect.unfinished import collection
from dr3.cores import available_cores
from dr3.data import ContinuousActions, Frames, Transitions, monte_carlo_returns, write_npz
from dr3.errors import UserError
from dr3.files import check_folder, write_json
from dr3.progress import reporter
from dr3.runs.interruption import watched

EPISODES_PER_PART = 10


@dataclass(frozen=True)
class Measured:
    """How often a skill succeeded in what was collected."""

    skill: str
    successes: int
    episodes: int

    def __str__(self) -> str:
        share = self.successes / self.episodes
        return f"{self.skill}: {self.successes} of {self.episodes} episodes ({share:.0%})"


def collect_drawers(
    task: str,
    *,
    out: str | Path,
    episodes: int = 500,
    steps: int = 40,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
) -> list[Measured]:
    """Act `episodes` episodes of `steps` steps of each skill of a task; the folder `out` gets prior.npz and task.npz.

    prior.npz holds the skills before the grasp (`drawers_skills.PRIOR`), one after the other, with every reward 0;
    task.npz the grasp out of a drawer that stands open, with its rewards. Back come the success rates, also kept in
    out/success.json. Ctrl-C or SIGTERM stops; the same call goes on, and ends with the same files.
    """
    folder = Path(out)
    _check(task, episodes, steps, seed, workers)
    check_folder(folder)
    asked = {"task": task, "episodes": episodes, "steps": steps, "seed": seed}
    unfinished, files = folder / "unfinished", {kind: folder / f"{kind}.npz" for kind in KINDS}
    with collection(unfinished, asked, *files.values()):
        parts = [part for kind in KINDS for part in _parts(unfinished, kind, asked)]
        _act_all(parts, workers or available_cores(), f"scripts in {task}", progress)
        measured = []
        for kind, file in files.items():
            loaded = [dict(np.load(part.path)) for part in parts if part.kind == kind]
            columns = {name: np.concatenate([part[name] for part in loaded]) for name in loaded[0]}
            del loaded
            measured += _measure(task, kind, columns["succeeded"])
            write_npz(file, _table(task, kind, columns, steps))
        rates = [{"skill": one.skill, "successes": one.successes, "episodes": one.episodes} for one in measured]
        write_json(folder / "success.json", {**asked, "measured": rates})
    return measured


def _check(task: str, episodes: int, steps: int, seed: int, workers: int | None) -> None:
    if task not in PRIOR:
        raise UserError(f"There are no scripts for the task {task!r}; there are for {', '.join(PRIOR)}.")
    for name, value in (("episodes", episodes), ("steps", steps), ("workers", 1 if workers is None else workers)):
        if value < 1:
            raise UserError(f"{name} must be at least 1, not {value}.")
    if seed < 0:
        raise UserError(f"A seed is a whole number from 0 on, not {seed}.")


def _parts(unfinished: Path, kind: str, asked: dict[str, Any]) -> Iterator[Part]:
    total = asked["episodes"] * len(skills_of(asked["task"], kind))
    for first in range(0, total, EPISODES_PER_PART):
        count = min(EPISODES_PER_PART, total - first)
        path = unfinished / f"{kind}-{first}.npz"
        yield Part(asked["task"], kind, asked["seed"], asked["steps"], first, count, path)


def _act_all(parts: Sequence[Part], workers: int, title: str, show: bool) -> None:
    missing = [part for part in parts if not part.path.exists()]
    total = sum(part.count for part in parts)
    done = total - sum(part.count for part in missing)
    acting = closing(_finished(missing, min(workers, len(missing))))
    with reporter(title, done, total, show=show, unit="episodes") as report, watched() as stopping, acting as finished:
        if 0 < done < total:
            report.say(f"Going on from episode {done:,}.")
        began, before = time.monotonic(), done
        for part in finished:
            done += part.count
            report.at(done, per_second=(done - before) / max(time.monotonic() - began, 1e-9), note="")
            if stopping.signal and done < total:
                report.say(f"Stopped after {done:,} episodes, all saved; the same command goes on from there.")
                stopping.leave()


def _finished(parts: Sequence[Part], workers: int) -> Generator[Part]:
    """Each part once it is on disk, in whatever order."""
    if workers <= 1:
        yield from map(act_part, parts)
        return
    # Fresh processes: a copy of one that has drawn shares its connection to the driver.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=fresh, initializer=_leave_signals_to_parent) as pool:
        ahead = iter(parts)
        # No more than are acted at once: who stops waits only for these.
        waiting = {pool.submit(act_part, part) for part in islice(ahead, workers)}
        while waiting:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            waiting |= {pool.submit(act_part, part) for part in islice(ahead, len(ready))}
            for future in ready:
                yield future.result()


def _leave_signals_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _measure(task: str, kind: str, succeeded: NDArray[np.bool_]) -> list[Measured]:
    skills = skills_of(task, kind)
    by_skill = [succeeded[number :: len(skills)] for number in range(len(skills))]
    return [Measured(skill.name, int(own.sum()), len(own)) for skill, own in zip(skills, by_skill, strict=True)]


def _table(task: str, kind: str, columns: dict[str, NDArray[Any]], steps: int, discount: float = 0.99) -> Transitions:
    """Episodes of equal length, each cut by a time-out; a frame is stored once, as s' of one row and s of the next."""
    count = len(columns["frames"])
    frames = columns["frames"].reshape(count * (steps + 1), *columns["frames"].shape[2:])
    newest = (np.arange(count)[:, None] * (steps + 1) + np.arange(steps)).ravel().astype(np.int32)
    episodes = np.repeat(np.arange(count, dtype=np.int32), steps)
    rewards = columns["rewards"].ravel() if kind == "task" else np.zeros(count * steps, np.float32)
    timeouts = np.tile(np.arange(steps) == steps - 1, count)
    actions = columns["actions"].reshape(count * steps, -1)
    following = np.where(timeouts[:, None], 0, np.roll(actions, -1, axis=0)).astype(np.float32)
    return Transitions(
        observations=Frames(frames, newest),
        actions=actions,
        rewards=rewards,
        next_observations=Frames(frames, newest + 1),
        terminals=np.zeros(count * steps, np.bool_),
        timeouts=timeouts,
        next_actions=following,
        next_action_known=~timeouts,
        returns=monte_carlo_returns(rewards, episodes, discount),
        episodes=episodes,
        action_space=ContinuousActions(actions.shape[1]),
        returns_discount=discount,
        name=f"{task.replace('/', '-')}-{kind}",
        world=task,
    )
