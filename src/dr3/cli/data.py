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

examples:

dr3 data describe grid16smoothobs:size=1024

dr3 data describe "replay.npz:replay=1%"

dr3 data collect dqn --env minatar/breakout --steps 1e6 --out breakout.npz

dr3 data collect dqn --env atari/Pong --steps 1e6 --out Pong/1/replay_logs"""


@dataclass(frozen=True)
class Describe:
    """What a file or a world's sample holds: rows, episodes, returns, ends, rewards, and what looks wrong."""

    source: Annotated[str, tyro.conf.Positional]
    """A file (.npz), a folder of DQN-replay files, sample:NAME, or a gridworld's name; each with settings."""

    json: bool = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class Collect:
    """Where to act, how long, and where the replay goes."""

    env: str
    """A game: minatar/asterix, minatar/breakout, minatar/freeway, minatar/seaquest, minatar/space_invaders, or one of
    Atari's, such as atari/Pong."""

    out: Path
    """The file (.npz); for Atari also a folder, for DQN-replay files. Stopped or killed, the same command goes on."""

    steps: Count = 1_000_000
    """Steps of the agent."""

    seed: int = 0
    """Another seed, another replay."""


def main(arguments: list[str]) -> int:
    return dispatch("dr3 data", {"describe": _describe, "collect": _collect}, USAGE, arguments)


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


def _collect(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: dr3 data collect dqn --env WORLD --steps N --out FILE.npz …\n\ndr3 data collect dqn --help")
        return 0
    agent, *rest = arguments
    if agent != "dqn":
        raise UserError(f"There is no agent {agent!r} to collect data with; there is dqn.")

    from dr3.methods import DQN

    collect: Any
    if any("atari/" in word and "minatar/" not in word for word in rest):  # other defaults, and other flags
        from dr3.collect.emulated import ATARI_DQN as defaults
        from dr3.collect.emulated import AtariSchedule as schedule
        from dr3.collect.emulated import collect_emulated_dqn as collect
    else:
        from dr3.collect.online_dqn import MINATAR_DQN as defaults
        from dr3.collect.online_dqn import Schedule as schedule
        from dr3.collect.replay import collect_dqn as collect

    parts: list[Any] = [("run", Collect), ("schedule", schedule), ("method", DQN, field(default=defaults))]
    whole = dataclasses.make_dataclass("CollectDQN", parts, frozen=True)
    about = "Train a DQN online and keep all that it saw: its replay. With --env atari/GAME the defaults are Atari's."
    chosen: Any = parse(whole, rest, prog="dr3 data collect dqn", description=about)
    run = chosen.run
    data = collect(run.env, steps=run.steps, out=run.out, seed=run.seed, method=chosen.method, schedule=chosen.schedule)
    print(f"{len(data):,} steps in {len(set(data.episodes.tolist())):,} episodes are in {run.out}")
    return 0
