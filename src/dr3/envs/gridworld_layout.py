"""Where the walls, the start and the goal of the 16 x 16 gridworlds are (Fu et al. 2019, used in appendix A.6)."""

from __future__ import annotations

import math
import random
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dr3.errors import UserError

SIZE = 16
EMPTY, WALL, START, GOAL, LAVA = "O", "#", "S", "R", "L"
MOVES = ((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0))  # (dx, dy) of stay, up, down, left, right
WALL_RATIO, GOAL_CANDIDATE_RATIO = 0.2, 0.25

Cell = tuple[int, int]  # (x, y), counted from the upper left corner


def state_of(cell: Cell) -> int:
    """The index of a cell: x + 16 y."""
    return cell[0] + SIZE * cell[1]


def random_layout(*, lava: float = 0.0) -> NDArray[np.str_]:
    """The tiles of the maze, (16, 16) letters indexed [y, x].

    The generator is seeded with 0 and its draws come in the original order, so the maze is always the same: 51 walls
    first, then 64 candidates for the goal, of which the one farthest from the start is taken (the first on ties).
    """
    draws = random.Random(0)
    start = (SIZE // 2, SIZE // 2)
    free = [cell for cell in product(range(SIZE), range(SIZE)) if cell != start]
    walls = set(draws.sample(free, int(SIZE * SIZE * WALL_RATIO)))
    free = [cell for cell in free if cell not in walls]
    candidates = draws.sample(free, int(SIZE * SIZE * GOAL_CANDIDATE_RATIO))
    goal = max(candidates, key=lambda cell: math.dist(cell, start))

    tiles = np.full((SIZE, SIZE), EMPTY)
    for x, y in walls:
        tiles[y, x] = WALL
    tiles[start[1], start[0]] = START
    tiles[goal[1], goal[0]] = GOAL
    if lava:
        _pour_lava(tiles, lava, draws)
    return tiles


def find(tiles: NDArray[np.str_], letter: str) -> Cell:
    """The first cell that holds a letter, in reading order."""
    y, x = np.argwhere(tiles == letter)[0]
    return int(x), int(y)


def successors(tiles: NDArray[np.str_]) -> NDArray[np.int64]:
    """The state that each action leads to when nothing goes wrong: (256, 5).

    A move off the board or into a wall stays put; wall and lava cells are never left.
    """
    table = np.empty((SIZE * SIZE, len(MOVES)), np.int64)
    for y, x in product(range(SIZE), range(SIZE)):
        for action, (dx, dy) in enumerate(MOVES):
            to_x, to_y = min(max(x + dx, 0), SIZE - 1), min(max(y + dy, 0), SIZE - 1)
            stuck = tiles[y, x] in (WALL, LAVA) or tiles[to_y, to_x] == WALL
            table[state_of((x, y)), action] = state_of((x, y) if stuck else (to_x, to_y))
    return table


def reachable(tiles: NDArray[np.str_]) -> set[int]:
    """Every state that some sequence of actions leads to from the start."""
    table = successors(tiles)
    seen = {state_of(find(tiles, START))}
    frontier = list(seen)
    while frontier:
        found = {int(state) for state in table[frontier.pop()]} - seen
        seen |= found
        frontier.extend(found)
    return seen


def _pour_lava(tiles: NDArray[np.str_], fraction: float, draws: random.Random) -> None:
    """Turn a fraction of the empty cells into lava, skipping cells without which the goal could not be reached.

    The paper speaks of lava, but the public mazes hold none: how much there is and where it lies is our own choice.
    """
    if not 0 <= fraction < 1:
        raise UserError(f"The fraction of lava must be at least 0 and below 1, not {fraction}.")
    empty = [(int(x), int(y)) for y, x in np.argwhere(tiles == EMPTY)]
    wanted = round(fraction * len(empty))
    goal = state_of(find(tiles, GOAL))
    for x, y in draws.sample(empty, len(empty)):
        if np.count_nonzero(tiles == LAVA) == wanted:
            return
        tiles[y, x] = LAVA
        if goal not in reachable(tiles):
            tiles[y, x] = EMPTY
    if np.count_nonzero(tiles == LAVA) < wanted:
        raise UserError(f"A fraction of lava of {fraction} would cut the start off from the goal; ask for less.")
