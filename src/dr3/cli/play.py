"""`dr3 play WORLD …`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dr3.cli.parsing import parse

EXAMPLES = """\
examples:

dr3 play drawers/blocked-by-drawer --policy scripted --out solved.gif

dr3 play kitchen/complete --policy scripted --out cooked.gif

dr3 play Hopper-v5 --policy runs/hopper --out hopper.gif

dr3 play Hopper-v5 --policy runs/hopper@100000 --out hopper.gif

dr3 play pointmaze/medium --policy runs/maze@20000:1 --out maze.gif

dr3 play antmaze/umaze --policy scripted --every 4 --out follower.gif

dr3 play ant/waypoints --policy walker.npz --out walker.gif"""


@dataclass(frozen=True)
class Play:
    """One episode of a policy, or its first 1,000 steps, written as a GIF."""

    world: Annotated[str, tyro.conf.Positional]
    """drawers/blocked-by-drawer, drawers/blocked-by-object, drawers/closed, drawers/open, a maze (pointmaze/umaze,
    antmaze/medium-play, …), kitchen/complete, or a Gymnasium id."""

    policy: str = "random"
    """random, scripted (in the drawers, the kitchen and mazes), or what a run has learned: RUN (what dr3 select chose
    there, else the last checkpoint of member 0), RUN@STEP, or RUN@STEP:MEMBER; or the file that
    dr3 data collect sac --policy wrote."""

    out: Path | None = None
    """The file (.gif); by default it is called after the world."""

    seed: int = 0
    """Another seed, another episode."""

    every: int = 1
    """Keep the picture of one step in so many: smaller files."""


def main(arguments: list[str]) -> int:
    options = parse(Play, arguments, prog="dr3 play", description=f"{Play.__doc__}\n\n{EXAMPLES}")

    from dr3.collect.film import check_gif, film, write_gif

    out = options.out or Path(f"{options.world.replace('/', '-')}.gif")
    check_gif(out)  # before the episode is acted, not after
    played = film(options.world, options.policy, seed=options.seed, every=options.every)
    write_gif(out, played.frames, played.frames_per_second)
    part = "" if played.over else "the episode's first "
    print(f"{part}{played.steps} steps with a return of {played.total:g} are in {out}")
    return 0
