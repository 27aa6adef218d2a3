"""`dr3 train METHOD …`"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dr3.cli.parsing import Count, parse, value_of
from dr3.errors import UserError
from dr3.progress import plain_console

if TYPE_CHECKING:
    from dr3.registry import Registry

EXAMPLES = """\
examples:

dr3 train dqn --data grid16smoothobs --regularizer dr3:0.03 --steps 5000 --seeds 3 --out runs/first

dr3 train dqn --data logged.npz --regularizer none dr3:0.01 dr3:0.1 --steps 1e5 --target-period 200

dr3 train cql --data hopper.npz:fraction=0.2 --regularizer none dr3:0.01 --env Hopper-v5 --steps 1e5

dr3 train td --data grid16randomsparse:size=1024:seed=1 --behavior cloned

dr3 train dqn --data grid16smoothobs --steps 5000 --init-from runs/first@2500:0"""


@dataclass(frozen=True)
class Run:
    """What to train on, how long, and where the run goes."""

    data: str
    """A file (replay.npz:replay=1%), a folder of Minari or of DQN-replay files, sample:NAME, or a gridworld's name
    (grid16smoothobs:size=1024), each with settings. Several are joined by +."""

    regularizer: tuple[str, ...] = ("none",)
    """none, dr3, label-noise, srank, norm or a plugin's, each with a coefficient and settings
    (dr3:0.03:stop_gradient=next). The authors' Atari agent: dr3:0.1:absolute:mask_terminals=false. Several make a
    population."""

    steps: Count = 100_000
    """Updates of each member. A run is lengthened by asking for more."""

    seeds: int = 1
    """Members with seeds 0, 1, … for each regularizer."""

    out: Path | None = None
    """The run folder; by default one under runs/ whose name follows from the configuration."""

    held_out: str | None = None
    """Keep a share of the episodes aside, such as 20%: select and evaluate judge by them."""

    init_from: str | None = None
    """Start from what another run has learned: RUN@STEP, or RUN@STEP:MEMBER where it has several members.
    RUN@best is the checkpoint with the highest return."""

    env: str = "auto"
    """Where policies are evaluated: a gridworld (grid16smoothobs:lava=0.1), minatar/GAME, atari/GAME, a maze, the
    kitchen, drawers/TASK, a Gymnasium id, none; auto is where the data came from."""

    episodes: Count = 10
    """Episodes of each try, where it is by episodes."""

    metrics_every: Count | None = None
    """Updates between two measurements; by default there are 100."""

    evaluate_every: Count | None = None
    """Updates between two tries of the policy, each with a checkpoint; by default there are 20."""

    chunk: Count | None = None
    """Updates in one compiled call, by default about a second's worth. Results do not depend on it."""

    data_on: Literal["auto", "device", "host"] = "auto"
    """Where the table is: the host streams one that the device cannot hold. Results do not depend on it."""


def main(arguments: list[str]) -> int:
    chosen = parse_with_method("train", Run, arguments, EXAMPLES)
    if chosen is not None:
        _summarise(train_with(chosen.run, chosen.method))
    return 0


def parse_with_method(command: str, run: type[Run], arguments: list[str], examples: str) -> Any:
    """`METHOD`, then the flags of both: an object with `run` and `method`; None where only help was asked for."""
    from dr3.methods import METHODS

    if not arguments or arguments[0].startswith("-"):
        if not arguments or arguments[0] in ("-h", "--help"):
            print(_help(command, examples))
            return None
        raise UserError(f"dr3 {command} needs a method first: one of {', '.join(METHODS)}.")
    name, *rest = arguments
    asked = {"-h", "--help"} & set(rest)
    cls = class_for(METHODS.lookup(name), None if asked else value_of("--data", rest))
    both = dataclasses.make_dataclass(command.title(), [("run", run), ("method", cls)], frozen=True)
    return parse(both, rest, prog=f"dr3 {command} {name}", description=f"{cls.__doc__}\n\n{examples}")


def train_with(run: Run, method: Any) -> Any:
    """Train what the flags say; the run."""
    from dr3.methods import Spec
    from dr3.regularizers.parse import parse_regularizer
    from dr3.training import train
    from dr3.training.execution import start_xla, threads_for

    cloning = getattr(method, "warm_start", 0) + getattr(method, "behavior_steps", 0)
    if cloning and cloning >= run.steps and run.init_from is None:
        print(
            f"Note: {method.name} clones for its first {cloning:,} updates, so with --steps {run.steps} it does "
            "nothing else: give more, or a shorter --warm-start or --behavior-steps.",
            file=sys.stderr,
        )
    data = table_of(run.data, method.discount)
    start_xla(threads_for(run.seeds * len(run.regularizer), method, Spec.of(data), len(data)))
    return train(
        data,
        method,
        regularizer=[parse_regularizer(word) for word in run.regularizer],
        steps=run.steps,
        seeds=run.seeds,
        held_out=run.held_out,
        init_from=run.init_from,
        env=None if run.env == "none" else run.env,
        episodes=run.episodes,
        out=run.out,
        metrics_every=run.metrics_every,
        evaluate_every=run.evaluate_every,
        chunk=run.chunk,
        data_on=run.data_on,
    )


def class_for(cls: Any, word: str | None) -> Any:
    """The method's class, or the one that its name stands for where the data of a word hold the other actions."""
    from dr3.data.transitions import ContinuousActions, DiscreteActions
    from dr3.methods import FOR_CONTINUOUS_ACTIONS, FOR_DISCRETE_ACTIONS

    if word:
        for names, kind in ((FOR_CONTINUOUS_ACTIONS, ContinuousActions), (FOR_DISCRETE_ACTIONS, DiscreteActions)):
            other: Any = names.get(cls.name)
            if other is not None and isinstance(table_of(word, other.discount).action_space, kind):
                return other
    return cls


@cache
def table_of(source: str, discount: float) -> Any:
    """Read once, though the actions are looked at before it is known what to train."""
    from dr3.data import load

    return load(source, discount=discount)


def _summarise(runs: Any) -> None:
    """The last measurement of each member, and where everything is."""
    from rich.table import Table

    from dr3.runs.outcomes import RETURN

    table = Table(title=f"{runs.members[0].method.name} on {runs.config.data.name}, step {runs.status['step']:,}")
    columns = {
        "dot product": runs.metrics.get("features/dot_product"),
        "cosine": runs.metrics.get("features/cosine"),
        "srank": runs.metrics.get("features/srank"),
        "mean Q": runs.metrics.get("q/data_mean"),
        "return": runs.evaluations.get(RETURN),
    }
    columns = {name: values for name, values in columns.items() if values is not None}
    for name in ("member", *columns, "note"):
        table.add_column(name, justify="left" if name in ("member", "note") else "right")
    diverged = runs.status["diverged"]
    for number, label in enumerate(runs.labels):
        words = [f"{key} {value}" for key, value in label.items()]
        note = f"diverged at step {diverged[str(number)]:,}" if str(number) in diverged else ""
        table.add_row(", ".join(words), *[f"{values[number, -1]:.4g}" for values in columns.values()], note)
    console = plain_console()
    console.print(table)
    console.print(f"Everything is in {runs.path}", soft_wrap=True)


def _help(command: str, examples: str) -> str:
    from dr3.methods import METHODS
    from dr3.regularizers import REGULARIZERS

    return (
        f"usage: dr3 {command} METHOD --data DATA …\n\n"
        f"methods (dr3 {command} METHOD --help lists every flag):\n{_listed(METHODS)}\n\n"
        f"regularizers (--regularizer NAME:COEFFICIENT:SETTING=VALUE):\n{_listed(REGULARIZERS)}\n\n{examples}"
    )


def _listed(registry: Registry) -> str:
    """A line for each name. One that cannot be imported is a line too, and keeps nobody from the others."""

    def about(name: str) -> str:
        try:
            return (registry[name].__doc__ or "").strip().partition("\n")[0]
        except UserError as mistake:
            return str(mistake)

    width = max(map(len, registry))
    return "\n".join(f"  {name:<{width}}  {about(name)}" for name in registry)
