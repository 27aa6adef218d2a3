"""`dr3 data …`"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from dr3.cli.parsing import Count, dispatch, parse
from dr3.errors import UserError

if TYPE_CHECKING:
    from dr3.data import Transitions

USAGE = """\
usage: dr3 data describe SOURCE [--json]
       dr3 data convert SOURCE OUT [--format FORMAT]
       dr3 data collect dqn --env WORLD --steps N --out FILE.npz [--seed N …]
       dr3 data collect maze --env MAZE --kind play|diverse --steps N --out FILE [--seed N …]
       dr3 data collect sac --env WORLD --steps N --out FILE.npz [--cuts medium expert … --seed N …]

examples:

dr3 data describe grid16smoothobs:size=1024

dr3 data describe "replay.npz:replay=1%"

dr3 data convert "hopper_medium-v2.hdf5:fraction=0.2" hopper.npz

dr3 data convert breakout.npz breakout --format minari-arrow

dr3 data collect dqn --env minatar/breakout --steps 1e6 --out breakout.npz

dr3 data collect maze --env pointmaze/medium --kind play --steps 1e5 --out medium-play.npz

dr3 data collect sac --env Hopper-v5 --steps 3e5 --out hopper.npz --cuts random medium medium-replay"""


@dataclass(frozen=True)
class Describe:
    """What a file or a world's sample holds: rows, episodes, returns, ends, rewards, and what looks wrong."""

    source: Annotated[str, tyro.conf.Positional]
    """A file (.npz; .hdf5 as D4RL's), a folder of Minari or of DQN-replay files, sample:NAME, or a gridworld's name;
    each with settings."""

    json: bool = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class Convert:
    """Read logged data and write it in another format."""

    source: Annotated[str, tyro.conf.Positional]
    """Whatever `dr3 data describe` takes."""

    out: Annotated[Path, tyro.conf.Positional]
    """Where it goes. The endings .npz and .hdf5 (.h5) say the format."""

    format: str | None = None
    """npz, d4rl (HDF5), minari (a folder with HDF5 inside), minari-arrow, dqn-replay (a folder; stacks of images)."""


@dataclass(frozen=True)
class Collect:
    """Where to act, how long, and where the replay goes."""

    env: str
    """A game: minatar/asterix, minatar/breakout, minatar/freeway, minatar/seaquest, minatar/space_invaders."""

    out: Path
    """The file (.npz). Stopped or killed, the same command goes on."""

    steps: Count = 1_000_000
    """Steps of the agent."""

    seed: int = 0
    """Another seed, another replay."""


@dataclass(frozen=True)
class CollectMaze:
    """Follow waypoints through a maze, with noise, and keep what happened: ways that a method must put together."""

    env: str
    """pointmaze/umaze, pointmaze/medium or pointmaze/large."""

    out: Path
    """The file (.npz, .hdf5). Stopped or killed, the same command goes on."""

    steps: Count = 100_000
    """Steps of the point."""

    kind: Literal["play", "diverse"] = "diverse"
    """Between a few hand-picked places, or between any two."""

    seed: int = 0
    """Another seed, other ways."""

    noise: float = 0.5
    """Standard deviation of what is added to every action."""


@dataclass(frozen=True)
class CollectContinuous:
    """Where to act, how long, and where the replay goes."""

    env: str
    """A Gymnasium id with continuous actions: Hopper-v5, Walker2d-v5, HalfCheetah-v5, Ant-v5, …"""

    out: Path
    """The file (.npz). Stopped or killed, the same command goes on."""

    steps: Count = 300_000
    """Steps of the agent, each with an update after the first ones."""

    seed: int = 0
    """Another seed, another replay."""

    cuts: tuple[str, ...] = ()
    """D4RL's other kinds of data, each in a file beside it (OUT-medium.npz): random, medium, expert, medium-replay,
    medium-expert."""

    cut_steps: Count = 100_000
    """Steps of each of those."""


def main(arguments: list[str]) -> int:
    return dispatch("dr3 data", {"describe": _describe, "convert": _convert, "collect": _collect}, USAGE, arguments)


def _describe(arguments: list[str]) -> int:
    options = parse(Describe, arguments, prog="dr3 data describe", description=Describe.__doc__ or "")

    from dr3.collect import load
    from dr3.data import describe, table

    description = describe(load(options.source))
    if options.json:
        print(json.dumps(dataclasses.asdict(description), indent=2))
    else:
        from rich.console import Console

        Console().print(table(description))
    return 0


def _convert(arguments: list[str]) -> int:
    options = parse(Convert, arguments, prog="dr3 data convert", description=Convert.__doc__ or "")

    from dr3.collect import load
    from dr3.data import write

    if options.out.exists():
        raise UserError(f"{options.out} is there already; remove it or choose another name.")
    data = load(options.source)
    chosen = write(options.out, data, form=options.format)
    print(f"{len(data):,} rows in {len(set(data.episodes.tolist())):,} episodes are in {options.out} ({chosen})")
    return 0


def _collect(arguments: list[str]) -> int:
    agents = {"dqn": _collect_dqn, "sac": _collect_sac, "maze": _collect_maze}
    usage = "usage: " + "\n       ".join(f"dr3 data collect {agent} --help" for agent in agents)
    return dispatch("dr3 data collect", agents, usage, arguments)


def _collect_dqn(arguments: list[str]) -> int:
    from dr3.collect.online_dqn import MINATAR_DQN, Schedule
    from dr3.collect.replay import collect_dqn
    from dr3.methods import DQN

    parts: list[Any] = [("run", Collect), ("schedule", Schedule), ("method", DQN, field(default=MINATAR_DQN))]
    whole = dataclasses.make_dataclass("CollectDQN", parts, frozen=True)
    about = "Train a DQN online, in one compiled program, and keep all that it saw: its replay."
    chosen: Any = parse(whole, arguments, prog="dr3 data collect dqn", description=about)
    run = chosen.run
    data = collect_dqn(
        run.env, steps=run.steps, out=run.out, seed=run.seed, method=chosen.method, schedule=chosen.schedule
    )
    return _say_collected(data, run.out)


def _collect_maze(arguments: list[str]) -> int:
    options = parse(CollectMaze, arguments, prog="dr3 data collect maze", description=CollectMaze.__doc__ or "")

    from dr3.collect.maze import collect_maze

    return _say_collected(collect_maze(**dataclasses.asdict(options)), options.out)


def _say_collected(data: Transitions, out: Path) -> int:
    print(f"{len(data):,} steps in {len(set(data.episodes.tolist())):,} episodes are in {out}")
    return 0


def _collect_sac(arguments: list[str]) -> int:
    from dr3.collect.online_sac import Schedule
    from dr3.collect.sac_replay import collect_sac
    from dr3.methods import SAC

    parts: list[Any] = [("run", CollectContinuous), ("schedule", Schedule), ("method", SAC)]
    whole = dataclasses.make_dataclass("CollectSAC", parts, frozen=True)
    about = "Train a SAC online and keep all that it saw, its replay; and D4RL's other cuts of such a run."
    chosen: Any = parse(whole, arguments, prog="dr3 data collect sac", description=about)
    options = dataclasses.asdict(chosen.run)
    data = collect_sac(options.pop("env"), **options, method=chosen.method, schedule=chosen.schedule)
    return _say_collected(data, chosen.run.out)
