"""Play and diverse data of mazes, made by a follower of waypoints that knows the map (as D4RL made its own)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dr3.collect.gymnasium_world import Steps
from dr3.collect.loop import Collector, check_ending, check_target, collect, folder_beside
from dr3.data import Transitions, assemble, write
from dr3.data.npz import stored_arrays
from dr3.envs import WORLDS, make_world
from dr3.envs.mazes import Cell, Maze
from dr3.errors import UserError
from dr3.files import written_whole
from dr3.hyperparameters import within
from dr3.seeds import check_seed

Kind = Literal["play", "diverse"]
# (observation, the waypoint as seen from the body) -> an action
Steer = Callable[[NDArray[np.float32], NDArray[np.float64]], NDArray[np.floating]]

# Hand-picked places of the play data: starts and goals of D4RL's own maps (in "medium" its goal in the far corner, not
# the one behind it).
PLACES: dict[str, tuple[Cell, ...]] = {
    "umaze": ((1, 1), (1, 3), (3, 3), (3, 1)),
    "medium": ((1, 1), (2, 6), (5, 1), (6, 6)),
    "large": ((1, 1), (1, 6), (3, 5), (3, 10), (5, 2), (7, 4), (7, 6), (7, 9)),
}
NOISE = 0.5  # standard deviation of what is added to each action, as in D4RL's Maze2D
ARRIVED = 0.25  # of a cell's width


def collect_maze(
    env: str,
    *,
    steps: int,
    out: str | Path,
    kind: Kind = "diverse",
    seed: int = 0,
    noise: float = NOISE,
    steer: Steer | None = None,
    progress: bool = True,
) -> Transitions:
    """Go from place to place in a maze for `steps` steps and write what happened to `out` (.npz or .hdf5).

    An episode starts in one cell and follows the shortest way to another, cell by cell, with noise on every action.
    "play": both are among a few hand-picked places; "diverse": any free cells. No way leads from the start of
    an evaluation to its goal: who wants to go there must put ways together. The reward is the evaluation's all the same
    (1 within 0.5 of its goal, where the episode ends); arriving elsewhere, or the world's limit, is a time-out.

    `steer` moves the body towards a waypoint; by default that of PointMaze. An ant needs a trained walker here.

    An episode is a function of the seed and its number: stopped or killed, the same call goes on and ends with the
    same file.

    Args:
        env: The name of the world.
        steps: How many steps to take in it, of all copies together.
        out: The file (or folder) to write.
        kind: How goals are chosen: play or diverse.
        seed: Everything random follows from it.
        noise: The standard deviation of the noise on actions.
        steer: What moves the body towards a waypoint; None is PointMaze's.
        progress: Show how far it is, on stderr.
    """
    path = Path(out)
    if env not in WORLDS or "maze/" not in env:
        raise UserError(f"There is no maze {env!r}; there are {', '.join(name for name in WORLDS if 'maze/' in name)}.")
    if kind not in ("play", "diverse"):
        raise UserError(f"The kind of maze data is play or diverse, not {kind!r}.")
    if env.startswith("antmaze/") and steer is None:
        raise UserError(f"{env} needs a trained walker (steer=…, docs/collecting.md); pointmaze/… does without.")
    check_ending(path)
    check_seed(seed)
    within("steps", steps, 2)
    within("noise", noise, 0)
    check_target(path)
    settings = {"world": env, "steps": steps, "kind": kind, "seed": seed, "noise": noise}
    return collect(Follower(path, settings, steer or _steer_point), progress=progress)


class Follower(Collector):
    """Acts episode by episode; those that are done are kept in the folder, a part now and then."""

    def __init__(self, path: Path, settings: dict[str, Any], steer: Steer) -> None:
        env, self.kind, self.seed, self.noise = (settings[name] for name in ("world", "kind", "seed", "noise"))
        title = f"{self.kind} in {env}"
        super().__init__(title, settings["steps"], settings, folder_beside(path), [path])
        self.env, self.path, self.steer = env, path, steer

    def resume(self) -> int:
        self.world: Any = make_world(self.env)
        self.done = _parts(self.folder)
        self.made = sum(len(rows.rewards) for rows in self.done)
        return self.made

    def advance(self) -> int:
        self.done.append(_episode(self.world, self.kind, (self.seed, len(self.done)), self.noise, self.steer))
        self.made += len(self.done[-1].rewards)
        return self.made

    def save(self) -> None:
        _save(self.folder, self.done)

    def write(self) -> Transitions:
        table = _table(self.done, self.total, f"{self.env.replace('/', '-')}-{self.kind}-{self.seed}", self.env)
        write(self.path, table)
        return table

    def close(self) -> None:
        self.world.close()


def _episode(world: Any, kind: Kind, number: tuple[int, int], noise: float, steer: Steer) -> Steps:
    random = np.random.default_rng(number)
    inner = world.unwrapped
    start, target = _pair(inner.maze, kind, random)
    distances = inner.maze.distances(target)
    seen, _ = world.reset(seed=int(random.integers(2**31)), options={"start": start})
    steps = []
    over = False
    while not over:
        waypoint = _waypoint(inner, seen[:2], target, distances)
        wanted = steer(seen, waypoint - seen[:2])
        action = np.clip(wanted + noise * random.standard_normal(wanted.shape), -1, 1).astype(np.float32)
        after, reward, terminal, cut, _ = world.step(action)
        arrived = np.linalg.norm(after[:2] - inner.place(target)) <= ARRIVED * inner.scale
        over = terminal or cut or bool(arrived)
        steps.append((seen, action, reward, after, terminal, over and not terminal))
        seen = after
    now, actions, rewards, following, terminals, timeouts = (np.array(column) for column in zip(*steps, strict=True))
    return Steps(now, actions, rewards.astype(np.float32), following, terminals, timeouts)


def _pair(maze: Maze, kind: Kind, random: np.random.Generator) -> tuple[Cell, Cell]:
    """Where to start and where to go."""
    pairs = _pairs(maze, kind)
    return pairs[random.integers(len(pairs))]


@cache
def _pairs(maze: Maze, kind: Kind) -> list[tuple[Cell, Cell]]:
    """Every start and target, without those that begin at the goal (an episode would be over), and without those whose
    shortest way may lead through the start of an evaluation and then through its goal.
    """
    places = PLACES[maze.name] if kind == "play" else maze.free
    to_start, to_goal = maze.distances(maze.start), maze.distances(maze.goal)
    whole_way = to_goal[maze.start]
    pairs = [(here, there) for here in places for there in places if here not in (there, maze.goal)]
    return [
        (here, there)
        for here, there in pairs
        if to_start[here] + whole_way + to_goal[there] > maze.distances(there)[here]
    ]


def _waypoint(world: Any, place: NDArray[np.floating], target: Cell, distances: dict[Cell, int]) -> NDArray[np.float64]:
    """The centre of the next cell on the shortest way."""
    column, row = np.rint(place / world.scale).astype(int)
    here = (int(row) + world.maze.start[0], int(column) + world.maze.start[1])
    if here == target or here not in distances:  # a body may lean over a wall's edge
        nearest = min(distances, key=lambda cell: float(np.linalg.norm(world.place(cell) - place)))
        return world.place(target if here == target else nearest)
    return world.place(min(world.maze.neighbours(here), key=distances.__getitem__))


def _steer_point(seen: NDArray[np.float32], waypoint: NDArray[np.float64]) -> NDArray[np.float64]:
    """A proportional-derivative controller, with D4RL's gains."""
    return np.clip(10.0 * waypoint - seen[2:4], -1, 1)


def _table(parts: list[Steps], steps: int, name: str, env: str) -> Transitions:
    columns: dict[str, Any] = {
        field: np.concatenate([getattr(rows, field) for rows in parts])[:steps] for field in Steps._fields
    }
    columns["timeouts"][-1] |= not columns["terminals"][-1]
    columns |= {"name": np.array(name), "world": np.array(env)}
    return assemble(columns, source=name, name=name)


def _save(folder: Path, episodes: list[Steps]) -> None:
    """The episodes that no file has yet as one file, named by the number of the first and of the one after the last."""
    first = max((int(path.stem.partition("-")[2]) for path in folder.glob("*.npz")), default=0)
    fresh = episodes[first:]
    columns: dict[str, Any] = {
        field: np.concatenate([getattr(rows, field) for rows in fresh]) for field in Steps._fields
    }
    path = folder / f"{first:08d}-{len(episodes):08d}.npz"
    with written_whole(path) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **columns, lengths=np.array([len(rows.rewards) for rows in fresh]))


def _parts(folder: Path) -> list[Steps]:
    """The episodes that were saved, without a gap."""
    return [rows for path in sorted(folder.glob("*.npz")) for rows in _load(path)]


def _load(path: Path) -> Iterator[Steps]:
    stored = stored_arrays(path, f"remove {path.parent} to collect again from the start.")
    if not stored.keys() >= {*Steps._fields, "lengths"}:
        raise UserError(f"{path} holds no episodes of a maze; remove {path.parent} to collect again from the start.")
    columns = {field: stored[field] for field in Steps._fields}
    ends = np.cumsum(stored["lengths"])
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        yield Steps(**{field: values[first:end] for field, values in columns.items()})
