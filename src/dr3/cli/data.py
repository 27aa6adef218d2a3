"""`dr3 data …`"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from dr3.cli.parsing import Count, dispatch, parse
from dr3.errors import UserError

USAGE = """\
usage: dr3 data describe SOURCE [--json]
       dr3 data collect dqn --env WORLD --steps N --out FILE.npz [--seed N …]
       dr3 data collect drawers --task TASK --out FOLDER [--episodes N …]
       dr3 data convert SOURCE --out FILE.npz [--allow-pickle]

examples:

dr3 data describe grid16smoothobs:size=1024

dr3 data describe "replay.npz:replay=1%"

dr3 data collect dqn --env minatar/breakout --steps 1e6 --out breakout.npz

dr3 data collect drawers --task drawers/closed --episodes 500 --out closed

dr3 data convert drawer_task.npy --out drawer_task.npz --allow-pickle

dr3 data describe "closed/prior.npz:trajectories=5%+closed/task.npz:trajectories=5%\""""


@dataclass(frozen=True)
class Describe:
    """What a file or a world's sample holds: rows, episodes, returns, ends, rewards, and what looks wrong."""

    source: Annotated[str, tyro.conf.Positional]
    """A file (.npz), a folder of DQN-replay files, sample:NAME, or a gridworld's name; each with settings. Several are
    joined by +."""

    json: bool = False
    """Print JSON instead of a table."""

    allow_pickle: bool = False
    """Load COG's own files (.npy), which are pickles: only if you trust where they come from."""


@dataclass(frozen=True)
class Convert:
    """Write any data as one .npz file, which holds plain numbers only."""

    source: Annotated[str, tyro.conf.Positional]
    """As for dr3 data describe, with settings: prior.npy:zero_rewards=true."""

    out: Path
    """The file (.npz)."""

    allow_pickle: bool = False
    """Load COG's own files (.npy), which are pickles: only if you trust where they come from."""


@dataclass(frozen=True)
class CollectDrawers:
    """Scripted episodes in front of the drawers: prior.npz (no rewards), task.npz, and how often scripts succeeded."""

    task: str
    """drawers/blocked-by-drawer, drawers/blocked-by-object or drawers/closed."""

    out: Path
    """The folder for both files. Stopped or killed, the same command goes on."""

    episodes: Count = 500
    """Episodes of each skill."""

    steps: int = 40
    """Steps of each episode."""

    seed: int = 0
    """Another seed, other episodes."""

    workers: int | None = None
    """Processes; by default one for each core. The data does not depend on it."""


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


def main(arguments: list[str]) -> int:
    return dispatch("dr3 data", {"describe": _describe, "collect": _collect, "convert": _convert}, USAGE, arguments)


def _describe(arguments: list[str]) -> int:
    options = parse(Describe, arguments, prog="dr3 data describe", description=Describe.__doc__ or "")

    from dr3.collect import load
    from dr3.data import describe, table

    description = describe(load(options.source, allow_pickle=options.allow_pickle))
    if options.json:
        print(json.dumps(dataclasses.asdict(description), indent=2))
    else:
        from rich.console import Console

        Console().print(table(description))
    return 0


def _convert(arguments: list[str]) -> int:
    options = parse(Convert, arguments, prog="dr3 data convert", description=Convert.__doc__ or "")
    if options.out.suffix != ".npz":
        raise UserError(f"{options.out}: data is written as .npz; give the file that ending.")
    if options.out.exists():
        raise UserError(f"{options.out} is there already; remove it or choose another name.")

    from dr3.collect import load
    from dr3.data import write_npz

    data = load(options.source, allow_pickle=options.allow_pickle)
    write_npz(options.out, data)
    print(f"{len(data):,} steps in {len(set(data.episodes.tolist())):,} episodes are in {options.out}")
    return 0


def _collect(arguments: list[str]) -> int:
    return dispatch("dr3 data collect", {"dqn": _collect_dqn, "drawers": _collect_drawers}, USAGE, arguments)


def _collect_drawers(arguments: list[str]) -> int:
    about = CollectDrawers.__doc__ or ""
    options = parse(CollectDrawers, arguments, prog="dr3 data collect drawers", description=about)

    from dr3.collect.drawers import collect_drawers

    measured = collect_drawers(
        options.task,
        out=options.out,
        episodes=options.episodes,
        steps=options.steps,
        seed=options.seed,
        workers=options.workers,
    )
    print("How often the scripts succeeded:", *(f"  {one}" for one in measured), sep="\n")
    print(f"prior.npz, without rewards, and task.npz are in {options.out}")
    return 0


def _collect_dqn(rest: list[str]) -> int:
    from dr3.collect.online_dqn import MINATAR_DQN, Schedule
    from dr3.collect.replay import collect_dqn
    from dr3.methods import DQN

    parts: list[Any] = [("run", Collect), ("schedule", Schedule), ("method", DQN, field(default=MINATAR_DQN))]
    whole = dataclasses.make_dataclass("CollectDQN", parts, frozen=True)
    about = "Train a DQN online, in one compiled program, and keep all that it saw: its replay."
    chosen: Any = parse(whole, rest, prog="dr3 data collect dqn", description=about)
    run = chosen.run
    data = collect_dqn(
        run.env, steps=run.steps, out=run.out, seed=run.seed, method=chosen.method, schedule=chosen.schedule
    )
    print(f"{len(data):,} steps in {len(set(data.episodes.tolist())):,} episodes are in {run.out}")
    return 0
