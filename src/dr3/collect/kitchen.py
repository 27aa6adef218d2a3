"""`dr3 data collect kitchen`: scripted demonstrations on all cores, kept in parts, then made into one file.

Demonstration n depends on the seed and n alone. So which process acts it, and whether the collection was stopped and
went on, changes nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.collect.gymnasium_world import Steps
from dr3.collect.kitchen_acting import Part, act_part
from dr3.collect.kitchen_skills import DEMONSTRATIONS, SKILLS
from dr3.collect.loop import Collector, check_ending, check_target, collect, folder_beside
from dr3.collect.processes import in_processes
from dr3.collect.success import SuccessRate
from dr3.cores import available_cores
from dr3.data import assemble, write
from dr3.data.npz import stored_arrays
from dr3.envs.kitchen import Demonstrations
from dr3.errors import UserError
from dr3.files import write_json
from dr3.hyperparameters import within
from dr3.seeds import check_seed

EPISODES_PER_PART = 5


@dataclass(frozen=True)
class Demonstrated:
    """What the scripts came to."""

    steps: int
    episodes: int
    whole: int  # demonstrations that did all four of the world's tasks
    mean_return: float
    measured: list[SuccessRate]


def collect_kitchen(
    kind: Demonstrations,
    *,
    out: str | Path,
    episodes: int = 200,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
) -> Demonstrated:
    """Act `episodes` demonstrations in the kitchen and write them to `out` (.npz or .hdf5).

    A demonstration is a script that does four things by inverse kinematics, with noise on its actions: complete, all
    of the world's four; partial, any four of six, in a fifth of the demonstrations the world's; mixed, never the
    world's four together. The world pays 1 for each of its own four. How often each was done comes back, and is kept
    beside the file (partial.hdf5: partial.success.json). Ctrl-C or SIGTERM stops; the same call goes on, and ends
    with the same file.

    Args:
        kind: Which demonstrations: complete, partial or mixed.
        out: The file to write.
        episodes: How many.
        seed: Everything random follows from it.
        workers: Processes; None is one for each core.
        progress: Show how far it is, on stderr.
    """
    path = Path(out)
    if kind not in DEMONSTRATIONS:
        raise UserError(f"There are no demonstrations {kind!r}; there are {', '.join(DEMONSTRATIONS)}.")
    check_ending(path)
    check_seed(seed)
    within("episodes", episodes, 1)
    within("workers", 1 if workers is None else workers, 1)
    check_target(path)
    settings = {"world": f"kitchen/{kind}", "episodes": episodes, "seed": seed}
    return collect(_Demonstrations(path, kind, settings, workers or available_cores()), progress=progress)


class _Demonstrations(Collector):
    """Acts parts of some demonstrations, each in its own file in the folder, in any order."""

    unit = "episodes"

    def __init__(self, path: Path, kind: Demonstrations, settings: dict[str, Any], workers: int) -> None:
        self.path, self.kind, self.workers = path, kind, workers
        folder, total = folder_beside(path), settings["episodes"]
        self.parts = [
            Part(kind, settings["seed"], first, min(EPISODES_PER_PART, total - first), folder / f"{first}.npz")
            for first in range(0, total, EPISODES_PER_PART)
        ]
        super().__init__(f"demonstrations in {settings['world']}", total, settings, folder, [path])

    def resume(self) -> int:
        missing = [part for part in self.parts if not part.path.exists()]
        self.finished = in_processes(act_part, missing, min(self.workers, len(missing)))
        self.made = self.total - sum(part.count for part in missing)
        return self.made

    def advance(self) -> int:
        self.made += next(self.finished).count
        return self.made

    def write(self) -> Demonstrated:
        loaded = [stored_arrays(part.path, "remove it, and the same command makes it again.") for part in self.parts]
        columns = {name: np.concatenate([part[name] for part in loaded]) for name in loaded[0]}
        world, seed = self.settings["world"], self.settings["seed"]
        name = f"kitchen-{self.kind}-{seed}"
        rows: dict[str, Any] = {field: columns[field] for field in Steps._fields}
        table = assemble({**rows, "name": np.array(name), "world": np.array(world)}, source=name, name=name)
        came_to = Demonstrated(
            steps=len(columns["rewards"]),
            episodes=self.total,
            whole=int(columns["terminals"].sum()),
            mean_return=float(columns["rewards"].sum() / self.total),
            measured=_measure(columns["tried"], columns["done"]),
        )
        write_json(self.path.with_suffix(".success.json"), {**self.settings, **asdict(came_to)})
        write(self.path, table)
        return came_to

    def close(self) -> None:
        self.finished.close()


def _measure(tried: NDArray[np.bool_], done: NDArray[np.bool_]) -> list[SuccessRate]:
    counts = zip(SKILLS, done.sum(axis=0), tried.sum(axis=0), strict=True)
    return [SuccessRate(task, int(successes), int(begun)) for task, successes, begun in counts if begun]
