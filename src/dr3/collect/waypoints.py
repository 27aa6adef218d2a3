"""One episode of a follower of waypoints: from a cell of a maze to another, by the shortest way, with noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dr3.collect.gymnasium_world import Steps
from dr3.collect.walker import Walker
from dr3.envs import make_world
from dr3.envs.ant_body import has_fallen
from dr3.envs.mazes import Cell, Maze

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
ARRIVED = 0.25  # of a cell's width


@dataclass(frozen=True)
class Trips:
    """Which episodes: number n of them follows from this and n alone."""

    env: str
    kind: Kind
    seed: int
    noise: float
    walker: Path | None  # what drives an ant; None for a point


class Trip(NamedTuple):
    """One episode, and whether it came where it was to go."""

    number: int
    rows: Steps
    arrived: bool


class Guide:
    """Makes the episodes of `Trips`, one at a time."""

    def __init__(self, trips: Trips, steer: Steer | None = None) -> None:
        self.trips = trips
        self.world: Any = make_world(trips.env)
        self.steer = steer or (_steer_point if trips.walker is None else Walker(trips.walker))

    def __call__(self, number: int) -> Trip:
        random = np.random.default_rng((self.trips.seed, number))
        start, target = _pair(self.world.unwrapped.maze, self.trips.kind, random)
        return Trip(number, *self.lead(start, target, random))

    def lead(self, start: Cell, target: Cell, random: np.random.Generator) -> tuple[Steps, bool]:
        """From the one cell to the other: the steps, and whether it arrived."""
        return _episode(self.world, start, target, random, self.trips.noise, self.steer)

    def close(self) -> None:
        self.world.close()


def to_the_goal(world: Any) -> Callable[[NDArray[np.float32]], NDArray[np.floating]]:
    """From an observation to an action: the shortest way to the goal of a `MazeWorld`, without noise."""
    steer = _steer_point if world.body == "point" else Walker()
    distances = world.maze.distances(world.maze.goal)

    def act(seen: NDArray[np.float32]) -> NDArray[np.floating]:
        return steer(seen, _waypoint(world, seen[:2], world.maze.goal, distances) - seen[:2])

    return act


@cache
def _guide(trips: Trips) -> Guide:
    return Guide(trips)


def trip(asked: tuple[Trips, int]) -> Trip:
    """An episode by its number, in whatever process; each keeps the world and the walker that it has."""
    return _guide(asked[0])(asked[1])


def _episode(
    world: Any, start: Cell, target: Cell, random: np.random.Generator, noise: float, steer: Steer
) -> tuple[Steps, bool]:
    inner = world.unwrapped
    distances = inner.maze.distances(target)
    seen, _ = world.reset(seed=int(random.integers(2**31)), options={"start": start})
    steps = []
    over = arrived = False
    while not over:
        waypoint = _waypoint(inner, seen[:2], target, distances)
        wanted = steer(seen, waypoint - seen[:2])
        action = np.clip(wanted + noise * random.standard_normal(wanted.shape), -1, 1).astype(np.float32)
        after, reward, terminal, cut, _ = world.step(action)
        # At the goal's cell an episode goes on to the goal itself, where the world ends it.
        near = np.linalg.norm(after[:2] - inner.place(target)) <= ARRIVED * inner.scale
        arrived = bool(terminal if target == inner.maze.goal else near)
        fell = inner.body == "ant" and has_fallen(after[3:7])  # and cannot get up again
        over = terminal or cut or arrived or fell
        steps.append((seen, action, reward, after, terminal, over and not terminal))
        seen = after
    now, actions, rewards, following, terminals, timeouts = (np.array(column) for column in zip(*steps, strict=True))
    return Steps(now, actions, rewards.astype(np.float32), following, terminals, timeouts), arrived


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
    if here == target:
        return world.goal if target == world.maze.goal else world.place(target)
    if here not in distances:  # a body may lean over a wall's edge
        return world.place(min(distances, key=lambda cell: float(np.linalg.norm(world.place(cell) - place))))
    return world.place(min(world.maze.neighbours(here), key=distances.__getitem__))


def _steer_point(seen: NDArray[np.float32], waypoint: NDArray[np.float64]) -> NDArray[np.float64]:
    """A proportional-derivative controller, with D4RL's gains."""
    return np.clip(10.0 * waypoint - seen[2:4], -1, 1)
