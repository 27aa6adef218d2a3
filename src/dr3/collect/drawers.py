"""`dr3 data collect drawers`: scripted episodes on all cores, kept in parts, then made into two files.

Episode n of a file depends on the seed and n alone. So which process acts it, and whether the collection was stopped
and went on, changes nothing.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.collect.drawers_acting import KINDS, EpisodePart, act_part, skills_of
from dr3.collect.drawers_skills import PRIOR
from dr3.collect.loop import Collector, collect
from dr3.collect.processes import in_processes
from dr3.collect.success import SuccessRate
from dr3.cores import available_cores
from dr3.data import Frames, Transitions, assemble, write_npz
from dr3.data.npz import stored_arrays
from dr3.envs.drawers import Observation
from dr3.errors import UserError
from dr3.files import check_folder, write_json

EPISODES_PER_PART = 10


def collect_drawers(
    task: str,
    *,
    out: str | Path,
    episodes: int = 500,
    steps: int = 40,
    seed: int = 0,
    observation: Observation = "picture",
    workers: int | None = None,
    progress: bool = True,
) -> list[SuccessRate]:
    """Act `episodes` episodes of at most `steps` steps of each skill; the folder `out` gets prior.npz and task.npz.

    prior.npz holds the skills before the grasp (`drawers_skills.PRIOR`), one after the other, with every reward 0;
    task.npz the grasp out of a drawer that stands open, with its rewards. An episode ends with its script, cut by a
    time-out. Back come the success rates, also kept in out/success.json. The same seed gives the same episodes, as
    pictures or, with observation="state", as numbers. Ctrl-C or SIGTERM stops; the same call goes on, and ends with the
    same files.
    """
    folder = Path(out)
    _check(task, episodes, steps, seed, workers)
    check_folder(folder)
    settings = {"task": task, "observation": observation, "episodes": episodes, "steps": steps, "seed": seed}
    return collect(Scripts(folder, settings, workers or available_cores()), progress=progress)


class Scripts(Collector):
    """Acts parts of some episodes, each in its own file in the folder, in any order."""

    unit = "episodes"

    def __init__(self, out: Path, settings: dict[str, Any], workers: int) -> None:
        self.out, self.workers, self.task, self.observation = out, workers, settings["task"], settings["observation"]
        self.tables = {kind: out / f"{kind}.npz" for kind in KINDS}
        folder = out / "unfinished"
        self.parts = []
        for kind in KINDS:
            total = settings["episodes"] * len(skills_of(self.task, kind))
            for first in range(0, total, EPISODES_PER_PART):
                where = first, min(EPISODES_PER_PART, total - first), folder / f"{kind}-{first}.npz"
                how = settings["seed"], settings["steps"]
                self.parts.append(EpisodePart(self.task, kind, self.observation, *how, *where))
        total = sum(part.count for part in self.parts)
        super().__init__(f"scripts in {self.task}", total, settings, folder, list(self.tables.values()))

    def resume(self) -> int:
        missing = [part for part in self.parts if not part.path.exists()]
        self.finished = in_processes(act_part, missing, min(self.workers, len(missing)))
        self.made = self.total - sum(part.count for part in missing)
        return self.made

    def advance(self) -> int:
        self.made += next(self.finished).count
        return self.made

    def write(self) -> list[SuccessRate]:
        measured = []
        for kind, file in self.tables.items():
            advice = "remove it, and the same command makes it again."
            loaded = [stored_arrays(part.path, advice) for part in self.parts if part.kind == kind]
            columns = {name: np.concatenate([part[name] for part in loaded]) for name in loaded[0]}
            del loaded
            measured += _measure(self.task, kind, columns["succeeded"])
            write_npz(file, _table(self.task, kind, columns, self.observation))
        write_json(self.out / "success.json", {**self.settings, "measured": [asdict(one) for one in measured]})
        return measured

    def close(self) -> None:
        self.finished.close()


def _check(task: str, episodes: int, steps: int, seed: int, workers: int | None) -> None:
    if task not in PRIOR:
        raise UserError(f"There are no scripts for the task {task!r}; there are for {', '.join(PRIOR)}.")
    for name, value in (("episodes", episodes), ("steps", steps), ("workers", 1 if workers is None else workers)):
        if value < 1:
            raise UserError(f"{name} must be at least 1, not {value}.")
    if seed < 0:
        raise UserError(f"A seed is a whole number from 0 on, not {seed}.")


def _measure(task: str, kind: str, succeeded: NDArray[np.bool_]) -> list[SuccessRate]:
    skills = skills_of(task, kind)
    by_skill = [succeeded[number :: len(skills)] for number in range(len(skills))]
    return [SuccessRate(skill.name, int(own.sum()), len(own)) for skill, own in zip(skills, by_skill, strict=True)]


def _table(task: str, kind: str, columns: dict[str, NDArray[Any]], observation: Observation) -> Transitions:
    """Episodes cut by time-outs. A frame is stored once, as s' of one row and s of the next: one more than rows."""
    frames, ends = columns["frames"], np.cumsum(columns["lengths"])
    rows = np.arange(ends[-1])
    newest = (rows + np.searchsorted(ends, rows, side="right")).astype(np.int32)
    seen = [Frames(frames, of) if observation == "picture" else frames[of] for of in (newest, newest + 1)]
    table = {
        "observations": seen[0],
        "actions": columns["actions"],
        "rewards": columns["rewards"] if kind == "task" else np.zeros(len(rows), np.float32),
        "next_observations": seen[1],
        "terminals": np.zeros(len(rows), np.bool_),
        "timeouts": np.isin(rows, ends - 1),
        "world": task if observation == "picture" else f'{task}{{"observation": "{observation}"}}',
    }
    return assemble(table, source=task, name=f"{task}-{kind}")
