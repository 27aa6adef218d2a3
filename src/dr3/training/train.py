"""Training a population: batches meet a method and a regularizer, and a run folder comes out."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import jax

from dr3.data.subsets import split_episodes
from dr3.data.transitions import Transitions
from dr3.envs import Atari, Gridworld, MinAtar, known_world
from dr3.errors import UserError
from dr3.files import write_json
from dr3.hyperparameters import seconds, whole_number
from dr3.methods import Method
from dr3.regularizers import Regularizer
from dr3.runs.config import RunConfig
from dr3.runs.folder import RunFolder, describe_environment
from dr3.runs.member import population
from dr3.runs.runs import Runs
from dr3.training.evaluation import Evaluator, evaluator_for
from dr3.training.execution import execution_on, one_core_each
from dr3.training.feed import DataOn, place_of
from dr3.training.session import Training
from dr3.training.start import Start

NO_EVALUATION = "No evaluation: the data set names no environment; pass one (env=…, or --env on the command line)."


def train(
    data: Transitions,
    method: Method | Sequence[Method],
    *,
    regularizer: Regularizer | Sequence[Regularizer | None] | None = None,
    steps: int,
    seeds: int | Sequence[int] = 1,
    held_out: str | None = None,
    init_from: str | None = None,
    env: str | Gridworld | MinAtar | Atari | Evaluator | Literal["auto"] | None = "auto",
    episodes: int = 10,
    out: str | Path | None = None,
    metrics_every: int | None = None,
    evaluate_every: int | None = None,
    chunk: int | None = None,
    save_every: float | None = None,
    data_on: DataOn = "auto",
    progress: bool = True,
) -> Runs:
    """Train every method with every regularizer and every seed on `data`, or go on with what `out` holds of it.

    Ctrl-C or SIGTERM saves everything and then stops; the same call goes on from there, and a run that was killed at
    any moment ends with the same weights, metrics and evaluations, bit for bit, as one that was not.

    Args:
        data: The table to learn from.
        method: One method, or several settings of one class: each is trained.
        regularizer: One or several, each added to each method's loss; None is the base method.
        steps: Updates of each member. Asking for more later lengthens the run.
        seeds: How many members with seeds 0, 1, …; or the seeds.
        held_out: A share of the episodes, such as "20%", kept aside for `dr3 select` and `dr3 evaluate` to judge by;
            the run remembers which.
        init_from: `RUN@STEP` or `RUN@STEP:MEMBER`: every member starts from a critic that another run has learned, with
            a target network equal to it and a fresh optimizer; `RUN@best` is the checkpoint with the highest return. By
            default all start from random weights.
        env: Where policies are evaluated: a gridworld (exact values; `grid16smoothobs:lava=0.1`), `minatar/breakout`,
            `atari/Pong`, a Gymnasium id, a plugin's world, an evaluator of your own, None for nowhere; "auto" takes the
            world that the data came from, and says so where they do not tell.
        episodes: Episodes of each try, where it is by episodes.
        out: The run folder, by default one under `runs/` whose name follows from the configuration.
        metrics_every: Updates between two measurements; by default there are 100.
        evaluate_every: Updates between two evaluations of the policies, each with a checkpoint; by default 20.
        chunk: The most updates in one compiled call, by default about a second's worth. Results do not depend on it.
        save_every: Seconds, or a chunk, after which at the latest there is a state to resume from; 30 by default.
        data_on: Where the table is: on the "device", or on the "host", which gathers batches ahead of their use (so
            memory-mapped files are never in memory as a whole); "auto" goes by its size. Results do not depend on it.
        progress: Show how far it is, on stderr.

    Returns:
        The run: its metrics, evaluations and critics.

    Raises:
        UserError: What was asked for cannot be trained, or `out` holds another run.
    """
    if not isinstance(data, Transitions):
        raise UserError(f"data must be a table, as dr3.load or dr3.data.assemble makes one, not {_short(data)}.")
    steps, metrics_every = whole_number("steps", steps, 1), _cadence("metrics_every", metrics_every)
    evaluate_every, chunk = _cadence("evaluate_every", evaluate_every), _cadence("chunk", chunk)
    seconds("save_every", save_every)
    for name, value in {"out": out, "init_from": init_from}.items():
        if not isinstance(value, str | Path | None):
            raise UserError(f"{name} must be a text or a path, not {_short(value)}.")
    members = population(method, regularizer, seeds)
    start = None if init_from is None else Start.read(init_from)
    where = (data.world and known_world(data.world)) if env == "auto" else env
    evaluator = None if where is None else evaluator_for(where, episodes=episodes)
    config = RunConfig.of(
        data,
        members,
        steps=steps,
        metrics_every=metrics_every,
        evaluate_every=evaluate_every,
        held_out=held_out,
        evaluation=None if evaluator is None else evaluator.describe(),
        execution=execution_on(jax.default_backend()),
        one_core=one_core_each(len(members)),
        init_from=None if start is None else start.config,
    )
    data = data if held_out is None else split_episodes(data, held_out)[0]
    folder = RunFolder(out if out is not None else Path("runs") / config.folder_name)
    with folder.locked():
        if folder.config.exists():
            stored = RunConfig.read(folder.config)
            config = dataclasses.replace(
                config,
                # Cadences that were not asked for are those the run began with: its length may have been another.
                metrics_every=metrics_every or stored.metrics_every,
                evaluate_every=evaluate_every or stored.evaluate_every,
                one_core=stored.one_core,
            )
            config.check_continues(folder.path, stored)
        # What cannot be trained is refused before the folder says that it is this run's.
        place = place_of(data, data_on)
        training = Training(folder, config, data, place, evaluator, start)
        if not folder.config.exists():
            write_json(folder.environment, {**describe_environment(), "data_on": place})
        write_json(folder.config, config.to_json())
        if progress and env == "auto" and evaluator is None:
            print(NO_EVALUATION, file=sys.stderr, flush=True)
        training.run(chunk=chunk, show=progress, save_every=save_every)
    return Runs(folder.path)


def _cadence(name: str, value: int | None) -> int | None:
    return None if value is None else whole_number(name, value, 1)


def _short(value: object) -> str:
    return repr(str(value)) if isinstance(value, str | Path) else f"a {type(value).__name__}"
