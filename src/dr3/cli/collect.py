"""`dr3 data collect …`: making data by acting."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dr3.cli.parsing import Count, dispatch, parse, value_of, with_examples

if TYPE_CHECKING:
    from dr3.data import Transitions

LINES = """\
       dr3 data collect dqn --env WORLD --steps N [--out FILE.npz --seed N …]
       dr3 data collect sac --env WORLD --steps N [--out FILE --cuts medium expert … --policy FILE --seed N …]
       dr3 data collect maze --env MAZE --kind play|diverse --steps N [--out FILE --walker FILE --seed N …]
       dr3 data collect drawers --task TASK [--out FOLDER --episodes N …]
       dr3 data collect kitchen --demonstrations complete|partial|mixed [--out FILE --episodes N …]"""

EXAMPLES = """\
dr3 data collect dqn --env minatar/breakout --steps 1e6

dr3 data collect dqn --env minatar/breakout --steps 1e6 --regularizer dr3:0.01 --out breakout-with-dr3.npz

dr3 data collect dqn --env atari/Pong --steps 1e6 --out Pong/1/replay_logs

dr3 data collect sac --env Hopper-v5 --steps 3e5 --out hopper.hdf5 --cuts random medium medium-replay

dr3 data collect maze --env pointmaze/medium --kind play --steps 1e5 --out medium-play.npz

dr3 data collect maze --env antmaze/umaze --steps 1e6 --out antmaze-umaze.hdf5

dr3 data collect drawers --task drawers/closed --episodes 500 --out closed

dr3 data collect kitchen --demonstrations partial --episodes 200 --out kitchen-partial.hdf5"""

USAGE = f"usage:\n{LINES}\n\nexamples:\n\n{EXAMPLES}"


@dataclass(frozen=True)
class CollectDQN:
    """Where to act, how long, and where the replay goes."""

    env: str
    """A game: minatar/asterix, minatar/breakout, minatar/freeway, minatar/seaquest, minatar/space_invaders, or one of
    Atari's, such as atari/Pong."""

    out: Path | None = None
    """The file (.npz); for Atari also a folder, for DQN-replay files. Stopped or killed, the same command goes on. By
    default it is named after the game and the seed: minatar-breakout-dqn-0.npz, or the folder Pong/0/replay_logs."""

    steps: Count = 1_000_000
    """Steps of the agent."""

    seed: int = 0
    """Another seed, another replay."""

    regularizer: str = "none"
    """What is added to the agent's loss, as for dr3 train: dr3:0.01 is DR3 with the coefficient 0.01."""


@dataclass(frozen=True)
class CollectSAC:
    """Where to act, how long, and where the replay goes."""

    env: str
    """A Gymnasium id with continuous actions: Hopper-v5, Walker2d-v5, HalfCheetah-v5, Ant-v5, …"""

    out: Path | None = None
    """The file (.npz, or .hdf5 in D4RL's layout). Stopped or killed, the same command goes on. By default it is named
    after the world and the seed: hopper-v5-sac-0.npz."""

    steps: Count = 300_000
    """Steps of the agent, each with an update after the first ones."""

    seed: int = 0
    """Another seed, another replay."""

    cuts: tuple[str, ...] = ()
    """D4RL's other kinds of data, each in a file beside it (OUT-medium.hdf5): random, medium, expert, medium-replay,
    medium-expert."""

    cut_steps: Count = 100_000
    """Steps of each of those."""

    policy: Path | None = None
    """A file (.npz) for the weights of the last policy, which dr3 play and dr3 data collect maze --walker take."""


@dataclass(frozen=True)
class CollectMaze:
    """Follow waypoints through a maze, with noise, and keep what happened: ways that a method must put together."""

    env: str
    """pointmaze/umaze, pointmaze/medium, pointmaze/large, or one of AntMaze: antmaze/umaze, antmaze/medium-play, …"""

    out: Path | None = None
    """The file (.npz, or .hdf5 in D4RL's layout). Stopped or killed, the same command goes on. By default it is named
    after the maze, the kind and the seed: pointmaze-medium-play-0.npz."""

    steps: Count = 100_000
    """Steps of the point or the ant."""

    kind: Literal["play", "diverse"] | None = None
    """Between a few hand-picked places, or between any two. By default what the maze's name ends in, else diverse."""

    seed: int = 0
    """Another seed, other ways."""

    noise: float | None = None
    """Standard deviation of what is added to every action: 0.5 for the point, 0.2 for the ant."""

    walker: Path | None = None
    """What drives the ant: a policy that learned in ant/waypoints (dr3 data collect sac --policy FILE). By default the
    one that comes with dr3."""

    workers: int | None = None
    """Processes; by default one for each core. The data does not depend on it."""


@dataclass(frozen=True)
class CollectDrawers:
    """Scripted episodes in front of the drawers: prior.npz (no rewards), task.npz, and how often scripts succeeded."""

    task: str
    """drawers/blocked-by-drawer, drawers/blocked-by-object or drawers/closed."""

    out: Path | None = None
    """The folder for both files. Stopped or killed, the same command goes on. By default it is named after the task and
    the seed: drawers-closed-0."""

    episodes: Count = 500
    """Episodes of each skill."""

    steps: int = 40
    """The most steps of an episode, which ends with its script."""

    seed: int = 0
    """Another seed, other episodes."""

    observation: Literal["picture", "state"] = "picture"
    """What the arm sees: the camera's picture, or 15 numbers that say where things are. The episodes are the same."""

    workers: int | None = None
    """Processes; by default one for each core. The data does not depend on it."""


@dataclass(frozen=True)
class CollectKitchen:
    """Scripted demonstrations of four things to do in the kitchen, with noise, and how often scripts succeeded.

    example: dr3 data collect kitchen --demonstrations partial --episodes 200 --out kitchen-partial.hdf5
    """

    demonstrations: Literal["complete", "partial", "mixed"]
    """complete: the task's four things, always; partial: any four of six, in a fifth of the demonstrations the task's;
    mixed: any four, never the task's together."""

    out: Path | None = None
    """The file (.npz, or .hdf5 in D4RL's layout). Stopped or killed, the same command goes on. By default it is named
    after the kind and the seed: kitchen-partial-0.npz."""

    episodes: Count = 200
    """Demonstrations, of up to 280 steps."""

    seed: int = 0
    """Another seed, other demonstrations."""

    workers: int | None = None
    """Processes; by default one for each core. The data does not depend on it."""


def main(arguments: list[str]) -> int:
    agents = {"dqn": _dqn, "sac": _sac, "maze": _maze, "drawers": _drawers, "kitchen": _kitchen}
    return dispatch("dr3 data collect", agents, USAGE, arguments)


def _dqn(arguments: list[str]) -> int:
    from dr3.methods import DQN
    from dr3.regularizers.parse import parse_regularizer
    from dr3.training.execution import start_xla

    collect: Any
    atari = (value_of("--env", arguments) or "").startswith("atari/")
    if atari:  # other defaults, and other flags
        from dr3.collect.emulated_dqn import ATARI_DQN as defaults
        from dr3.collect.emulated_dqn import AtariSchedule as schedule
        from dr3.collect.emulated_dqn import collect_emulated_dqn as collect
    else:
        from dr3.collect.online_dqn import MINATAR_DQN as defaults
        from dr3.collect.online_dqn import DQNSchedule as schedule
        from dr3.collect.online_dqn import collect_dqn as collect

    parts: list[Any] = [("run", CollectDQN), ("schedule", schedule), ("method", DQN, field(default=defaults))]
    whole = dataclasses.make_dataclass("Collect", parts, frozen=True)
    about = "Train a DQN online and keep all that it saw: its replay. With --env atari/GAME the defaults are Atari's."
    chosen: Any = parse(
        whole,
        arguments,
        prog="dr3 data collect dqn",
        description=with_examples(about, EXAMPLES, "dr3 data collect dqn"),
    )
    options = _with_out(chosen.run, _replay_of(chosen.run.env, chosen.run.seed))
    options["regularizer"] = parse_regularizer(options["regularizer"])
    if not atari:
        start_xla(1)  # steps of a game and updates alike are too small to share: 7 s instead of 11 for 60,000 steps
    data = collect(options.pop("env"), **options, method=chosen.method, schedule=chosen.schedule)
    return _say(data, options["out"])


def _sac(arguments: list[str]) -> int:
    from dr3.collect.online_sac import SACSchedule, collect_sac
    from dr3.methods import SAC

    parts: list[Any] = [("run", CollectSAC), ("schedule", SACSchedule), ("method", SAC)]
    whole = dataclasses.make_dataclass("Collect", parts, frozen=True)
    about = "Train a SAC online and keep all that it saw, its replay; and D4RL's other cuts of such a run."
    chosen: Any = parse(
        whole,
        arguments,
        prog="dr3 data collect sac",
        description=with_examples(about, EXAMPLES, "dr3 data collect sac"),
    )
    options = _with_out(chosen.run, f"{_plain(chosen.run.env).lower()}-sac-{chosen.run.seed}.npz")
    data = collect_sac(options.pop("env"), **options, method=chosen.method, schedule=chosen.schedule)
    return _say(data, options["out"])


def _maze(arguments: list[str]) -> int:
    about = with_examples(CollectMaze.__doc__ or "", EXAMPLES, "dr3 data collect maze")
    chosen = parse(CollectMaze, arguments, prog="dr3 data collect maze", description=about)

    from dr3.collect.maze import collect_maze, kind_of

    kind = chosen.kind or kind_of(chosen.env)
    options = _with_out(chosen, f"{_plain(chosen.env).removesuffix(f'-{kind}')}-{kind}-{chosen.seed}.npz")
    return _say(collect_maze(**options), options["out"])


def _drawers(arguments: list[str]) -> int:
    about = with_examples(CollectDrawers.__doc__ or "", EXAMPLES, "dr3 data collect drawers")
    chosen = parse(CollectDrawers, arguments, prog="dr3 data collect drawers", description=about)

    from dr3.collect.drawers import collect_drawers

    options = _with_out(chosen, f"{_plain(chosen.task)}-{chosen.seed}")
    measured = collect_drawers(**options)
    print("How often the scripts succeeded:", *(f"  {one}" for one in measured), sep="\n")
    print(f"prior.npz, without rewards, and task.npz are in {options['out']}")
    return 0


def _kitchen(arguments: list[str]) -> int:
    about = CollectKitchen.__doc__ or ""
    chosen = parse(CollectKitchen, arguments, prog="dr3 data collect kitchen", description=about)

    from dr3.collect.kitchen import collect_kitchen

    options = _with_out(chosen, f"kitchen-{chosen.demonstrations}-{chosen.seed}.npz")
    came_to = collect_kitchen(options.pop("demonstrations"), **options)
    print("How often the scripts succeeded:", *(f"  {one}" for one in came_to.measured), sep="\n")
    print(f"  the whole task: {came_to.whole} of {came_to.episodes}; mean return {came_to.mean_return:.2f}")
    print(f"{came_to.steps:,} steps in {came_to.episodes:,} episodes are in {options['out']}")
    return 0


def _with_out(chosen: Any, default: str) -> dict[str, Any]:
    options = dataclasses.asdict(chosen)
    return options | {"out": options["out"] or Path(default)}


def _replay_of(env: str, seed: int) -> str:
    game = env.removeprefix("atari/")
    # Laid out as the public replays are: so the reader knows which game it is.
    return f"{_plain(env)}-dqn-{seed}.npz" if game == env else f"{_plain(game)}/{seed}/replay_logs"


def _plain(env: str) -> str:
    return env.replace("/", "-")


def _say(data: Transitions, out: Path) -> int:
    print(f"{len(data):,} steps in {len(set(data.episodes.tolist())):,} episodes are in {out}")
    return 0
