"""Training a population: batches meet a method and a regularizer, and a run folder comes out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import jax

from dr3.data.transitions import Transitions
from dr3.envs import Atari, Gridworld, MinAtar
from dr3.errors import UserError
from dr3.files import read_json, write_json
from dr3.hyperparameters import whole
from dr3.methods import Method
from dr3.regularizers import Regularizer
from dr3.runs import config as configuration
from dr3.runs.folder import RunFolder, describe_environment
from dr3.runs.member import population
from dr3.runs.runs import Runs
from dr3.training.evaluation import Evaluator, evaluator_for
from dr3.training.execution import execution_on, one_core_each
from dr3.training.feed import DataOn, place_of
from dr3.training.session import Training
from dr3.training.start import Start

NOT_TRIED = "Policies are not tried: the data do not say which world they came from; an env (--env) names one."


def train(
    data: Transitions,
    method: Method | Sequence[Method],
    *,
    regularizer: Regularizer | Sequence[Regularizer | None] | None = None,
    steps: int,
    seeds: int | Sequence[int] = 1,
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

    `init_from` (`RUN@STEP` or `RUN@STEP:MEMBER`) lets every member start from a critic that another run has learned,
    with a target network equal to it and a fresh optimizer; by default all start from random weights.

    `env` is where policies are tried: a gridworld (exact values; options as in `grid16smoothobs:lava=0.1`), a game of
    MinAtar (`minatar/breakout`) or of Atari (`atari/Pong`), a Gymnasium id, an evaluator of your own, None for nowhere;
    "auto" takes the world that the data came from, and says so where they do not tell. `out` is the run folder, by
    default one under `runs/` whose name follows from the configuration.
    Metrics are taken every `metrics_every` updates (default: 100 times), policies are tried and critics saved every
    `evaluate_every` updates (default: 20 times). `chunk` bounds the updates in one compiled call, by default about a
    second's worth; results do not depend on it. At least every `save_every` seconds (default: 30) and a chunk there is
    a state to resume from.

    `data_on` says where the table is: on the "device", or on the "host", which then gathers batches ahead of their use
    (so memory-mapped files are never in memory as a whole); "auto" chooses by its size. Results do not depend on it.

    Ctrl-C or SIGTERM saves everything and then stops; the same call goes on from there, and a run that was killed at
    any moment ends with the same weights, metrics and evaluations, bit for bit, as one that was not.
    """
    if not isinstance(data, Transitions):
        raise UserError(f"data must be a table, as dr3.load or dr3.data.assemble makes one, not {_short(data)}.")
    steps, metrics_every = whole("steps", steps, 1), _cadence("metrics_every", metrics_every)
    evaluate_every, chunk = _cadence("evaluate_every", evaluate_every), _cadence("chunk", chunk)
    members = population(method, regularizer, seeds)
    start = None if init_from is None else Start.read(init_from)
    where = data.world if env == "auto" else env
    evaluator = None if where is None else evaluator_for(where, episodes=episodes)
    config = configuration.resolve(
        data,
        members,
        None if evaluator is None else evaluator.describe(),
        steps=steps,
        metrics_every=metrics_every,
        evaluate_every=evaluate_every,
        execution=execution_on(jax.default_backend()),
        one_core=one_core_each(len(members)),
        init_from=None if start is None else start.describe(),
    )
    folder = RunFolder(out if out is not None else Path("runs") / configuration.folder_name(config))
    with folder.locked():
        if folder.config.exists():
            stored = read_json(folder.config, members=list, metrics_every=int, evaluate_every=int)
            # Cadences that were not asked for are those the run began with: its length may have been another.
            config["metrics_every"] = metrics_every or stored["metrics_every"]
            config["evaluate_every"] = evaluate_every or stored["evaluate_every"]
            config["one_core"] = stored.get("one_core", False)
            configuration.check_same(folder.path, stored, config)
        # What cannot be trained is refused before the folder says that it is this run's.
        place = place_of(data, data_on)
        training = Training(folder, config, members, data, place, evaluator, start)
        if not folder.config.exists():
            write_json(folder.environment, {**describe_environment(), "data_on": place})
        write_json(folder.config, config)
        if progress and env == "auto" and evaluator is None:
            print(NOT_TRIED, file=sys.stderr, flush=True)
        training.run(chunk=chunk, show=progress, save_every=save_every)
    return Runs(folder.path)


def _cadence(name: str, value: int | None) -> int | None:
    return None if value is None else whole(name, value, 1)


def _short(value: object) -> str:
    return repr(str(value)) if isinstance(value, str | Path) else f"a {type(value).__name__}"
