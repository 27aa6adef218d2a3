"""Play and diverse data of mazes, made by a follower of waypoints that knows the map (as D4RL made its own)."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from dr3.collect.gymnasium_world import Steps
from dr3.collect.loop import Collector, check_ending, check_target, collect, folder_beside
from dr3.collect.processes import in_processes
from dr3.collect.walker import SHIPPED, Walker
from dr3.collect.waypoints import Guide, Kind, Steer, Trip, Trips, trip
from dr3.cores import available_cores
from dr3.data import Transitions, assemble, write
from dr3.data.npz import stored_arrays
from dr3.envs import WORLDS
from dr3.errors import UserError
from dr3.files import sha256_of, written_whole
from dr3.hyperparameters import within
from dr3.seeds import check_seed

NOISE = {"pointmaze": 0.5, "antmaze": 0.2}  # of each action, a standard deviation, as in D4RL's Maze2D and AntMaze


def collect_maze(
    env: str,
    *,
    steps: int,
    out: str | Path,
    kind: Kind | None = None,
    seed: int = 0,
    noise: float | None = None,
    walker: str | Path | None = None,
    steer: Steer | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> Transitions:
    """Go from place to place in a maze for `steps` steps and write what happened to `out` (.npz or .hdf5).

    An episode starts in one cell and follows the shortest way to another, cell by cell, with noise on every action.
    "play": both are among a few hand-picked places; "diverse": any free cells. No way leads from the start of
    an evaluation to its goal: who wants to go there must put ways together. The reward is the evaluation's all the same
    (1 within 0.5 of its goal, where the episode ends); arriving elsewhere, a fall, or the world's limit, is a time-out.

    An ant is driven by a policy that learned to walk towards waypoints, in `ant/waypoints`.

    An episode is a function of the seed and its number: stopped or killed, the same call goes on and ends with the
    same file, whatever the number of workers.

    Args:
        env: The name of the world.
        steps: How many steps to take in it, of all copies together.
        out: The file (or folder) to write.
        kind: How goals are chosen: play or diverse; None is what the world's name ends in, else diverse.
        seed: Everything random follows from it.
        noise: The standard deviation of the noise on actions; None is 0.5 for a point and 0.2 for an ant.
        walker: The file with an ant's policy; None is the one that comes with dr3.
        steer: Something else that moves the body towards a waypoint, in this process.
        workers: Processes; None is one for each core for an ant, and this one for a point, whose steps are cheap.
        progress: Show how far it is, on stderr.
    """
    path = Path(out)
    if env not in WORLDS or "maze/" not in env:
        raise UserError(f"There is no maze {env!r}; there are {', '.join(name for name in WORLDS if 'maze/' in name)}.")
    kind = kind or kind_of(env)
    if kind not in ("play", "diverse"):
        raise UserError(f"The kind of maze data is play or diverse, not {kind!r}.")
    body = env.partition("/")[0]
    noise = NOISE[body] if noise is None else noise
    if walker is not None and (body != "antmaze" or steer is not None):
        raise UserError(f"A walker drives an ant, and nothing else does then; {env} needs none.")
    check_ending(path)
    check_seed(seed)
    within("steps", steps, 2)
    within("noise", noise, 0)
    within("workers", 1 if workers is None else workers, 1)
    check_target(path)
    driver = Path(walker or SHIPPED) if body == "antmaze" and steer is None else None
    settings: dict[str, Any] = {"world": env, "steps": steps, "kind": kind, "seed": seed, "noise": noise}
    if driver is not None:
        Walker(driver)  # refused here, not by a worker
        settings["walker"] = sha256_of(driver)
    if workers is None:
        workers = available_cores() if driver is not None else 1
    trips = Trips(env, kind, seed, noise, driver)
    return collect(Follower(path, settings, trips, steer, workers), progress=progress)


def kind_of(env: str) -> Kind:
    """The kind of data that a world's name ends in (antmaze/medium-play), else diverse."""
    return "play" if env.endswith("-play") else "diverse"


class Follower(Collector):
    """Acts episode by episode; those that are done are kept in the folder, a part now and then."""

    def __init__(self, path: Path, settings: dict[str, Any], trips: Trips, steer: Steer | None, workers: int) -> None:
        title = f"{trips.kind} in {trips.env}"
        super().__init__(title, settings["steps"], settings, folder_beside(path), [path])
        self.path, self.trips, self.steer, self.workers = path, trips, steer, workers
        self.coming = _in_order(self._made_from(0), 0)

    def resume(self) -> int:
        self.done = _parts(self.folder)
        self.made = sum(len(one.rows.rewards) for one in self.done)
        self.coming = _in_order(self._made_from(len(self.done)), len(self.done))
        return self.made

    def advance(self) -> int:
        self.done.append(next(self.coming))
        self.made += len(self.done[-1].rows.rewards)
        return self.made

    def note(self) -> str:
        return f", arrived in {np.mean([one.arrived for one in self.done]):.0%} of {len(self.done):,} episodes"

    def save(self) -> None:
        _save(self.folder, self.done)

    def write(self) -> Transitions:
        env, kind, seed = self.trips.env, self.trips.kind, self.trips.seed
        name = env.replace("/", "-").removesuffix(f"-{kind}")
        table = _table(self.done, self.total, f"{name}-{kind}-{seed}", env)
        write(self.path, table)
        return table

    def close(self) -> None:
        self.coming.close()

    def _made_from(self, first: int) -> Generator[Trip]:
        if self.workers > 1 and self.steer is None:
            yield from in_processes(trip, ((self.trips, number) for number in count(first)), self.workers)
            return
        guide = Guide(self.trips, self.steer)
        try:
            yield from map(guide, count(first))
        finally:
            guide.close()


def _in_order(trips: Generator[Trip], first: int) -> Generator[Trip]:
    """By their numbers, whichever came first."""
    early: dict[int, Trip] = {}
    try:
        for one in trips:
            early[one.number] = one
            while first in early:
                yield early.pop(first)
                first += 1
    finally:
        trips.close()


def _table(done: list[Trip], steps: int, name: str, env: str) -> Transitions:
    columns = _columns(done)
    columns = {field: column[:steps] for field, column in columns.items()}
    columns["timeouts"][-1] |= not columns["terminals"][-1]
    columns |= {"name": np.array(name), "world": np.array(env)}
    return assemble(columns, source=name, name=name)


def _columns(done: list[Trip]) -> dict[str, Any]:
    return {field: np.concatenate([getattr(one.rows, field) for one in done]) for field in Steps._fields}


def _save(folder: Path, done: list[Trip]) -> None:
    """The episodes that no file has yet as one file, named by the number of the first and of the one after the last."""
    first = max((int(path.stem.partition("-")[2]) for path in folder.glob("*.npz")), default=0)
    fresh = done[first:]
    if not fresh:
        return
    path = folder / f"{first:08d}-{len(done):08d}.npz"
    lengths, arrived = [len(one.rows.rewards) for one in fresh], [one.arrived for one in fresh]
    with written_whole(path) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **_columns(fresh), lengths=np.array(lengths), arrived=np.array(arrived))


def _parts(folder: Path) -> list[Trip]:
    """The episodes that were saved, without a gap."""
    stored = [one for path in sorted(folder.glob("*.npz")) for one in _load(path)]
    return [Trip(number, *one) for number, one in enumerate(stored)]


def _load(path: Path) -> Iterator[tuple[Steps, bool]]:
    stored = stored_arrays(path, f"remove {path.parent} to collect again from the start.")
    if not stored.keys() >= {*Steps._fields, "lengths", "arrived"}:
        raise UserError(f"{path} holds no episodes of a maze; remove {path.parent} to collect again from the start.")
    columns = {field: stored[field] for field in Steps._fields}
    ends = np.cumsum(stored["lengths"])
    for first, end, arrived in zip([0, *ends[:-1]], ends, stored["arrived"], strict=True):
        yield Steps(**{field: values[first:end] for field, values in columns.items()}), bool(arrived)
