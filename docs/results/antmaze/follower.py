"""How often the follower leads AntMaze's walker from the start of an evaluation to its goal, and how fast it is.

python docs/results/antmaze/follower.py --help
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from scipy.stats import binomtest

from dr3.collect.walker import SHIPPED
from dr3.collect.waypoints import Guide, Trips
from dr3.envs.ant_body import has_fallen

LAYOUTS = ("umaze", "medium-play", "large-play")  # those that end in -diverse are the same worlds


@dataclass(frozen=True)
class Options:
    """What to try."""

    walker: Path = SHIPPED
    """A policy that learned in ant/waypoints."""

    episodes: int = 50
    """Of each layout."""

    noise: float = 0.2
    """Standard deviation of what is added to actions, as in the data."""


def main(options: Options) -> None:
    print("| maze | arrived | 95 % interval | fell | steps of those that arrived | metres a second, on the way |")
    print("|---|---|---|---|---|---|")
    for layout in LAYOUTS:
        guide = Guide(Trips(f"antmaze/{layout}", "diverse", 0, options.noise, options.walker))
        print(row(layout, guide, options.episodes))
        guide.close()


def row(layout: str, guide: Guide, episodes: int) -> str:
    world: Any = guide.world.unwrapped
    maze = world.maze
    numbers = [np.random.default_rng((1, number)) for number in range(episodes)]
    trips = [guide.lead(maze.start, maze.goal, random) for random in numbers]
    lengths = [len(rows.rewards) for rows, arrived in trips if arrived]
    fell = sum(has_fallen(rows.next_observations[-1, 3:7]) for rows, _ in trips)
    interval = binomtest(len(lengths), episodes).proportion_ci(method="wilson")
    steps = f"{np.median(lengths):.0f} ({min(lengths)} to {max(lengths)})" if lengths else "none"
    moved = sum(np.linalg.norm(np.diff(rows.observations[::10, :2], axis=0), axis=1).sum() for rows, _ in trips)
    seconds = sum(len(rows.rewards) for rows, _ in trips) / 10
    cells = [f"{len(lengths)} of {episodes}", f"{interval.low:.0%} to {interval.high:.0%}", f"{fell}", steps]
    return f"| {layout.partition('-')[0]} | {' | '.join(cells)} | {moved / seconds:.2f} |"


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
