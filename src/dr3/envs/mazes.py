"""The three mazes of D4RL as maps: where walls are, where episodes start, where the goal is, the way between cells."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

Cell = tuple[int, int]  # row, column; the first row is the one with the smallest y


@dataclass(frozen=True)
class Maze:
    """A map of letters: # wall, S the start and G the goal of an evaluation, . empty."""

    name: str
    layout: tuple[str, ...]

    @cached_property
    def free(self) -> tuple[Cell, ...]:
        """Every cell that is no wall, row by row."""
        return tuple((r, c) for r, row in enumerate(self.layout) for c, letter in enumerate(row) if letter != "#")

    @property
    def start(self) -> Cell:
        return self._find("S")

    @property
    def goal(self) -> Cell:
        return self._find("G")

    def distances(self, target: Cell) -> dict[Cell, int]:
        """Steps from every free cell to the target, breadth first; moves are to the four neighbours."""
        found, waiting = {target: 0}, deque([target])
        while waiting:
            here = waiting.popleft()
            for cell in self.neighbours(here):
                if cell not in found:
                    found[cell] = found[here] + 1
                    waiting.append(cell)
        return found

    def neighbours(self, cell: Cell) -> list[Cell]:
        row, column = cell
        around = ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
        return [(r, c) for r, c in around if self.layout[r][c] != "#"]  # the outer cells are all walls

    def _find(self, letter: str) -> Cell:
        row = next(number for number, letters in enumerate(self.layout) if letter in letters)
        return row, self.layout[row].index(letter)


MAZES = {
    maze.name: maze
    for maze in (
        Maze("umaze", ("#####", "#S..#", "###.#", "#G..#", "#####")),
        Maze(
            "medium",
            (
                "########",
                "#S.##..#",
                "#..#...#",
                "##...###",
                "#..#...#",
                "#.#..#.#",
                "#...#.G#",
                "########",
            ),
        ),
        Maze(
            "large",
            (
                "############",
                "#S...#.....#",
                "#.##.#.#.#.#",
                "#......#...#",
                "#.####.###.#",
                "#..#.#.....#",
                "##.#.#.#.###",
                "#..#...#.G.#",
                "############",
            ),
        ),
    )
}
