"""What is kept of a finished population: one small file with all that a verdict, a picture or a page is made from.

Runs are large and stay where they were trained. A bundle holds curves by seed, the returns of single episodes at the
checkpoints that are judged, how much of Q lies beyond what rewards allow, and the settings, commit, versions and time.
"""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dr3.data import load
from dr3.diagnostics.measure import measure
from dr3.diagnostics.reinitialisation import reinitialise
from dr3.errors import UserError
from dr3.files import for_json, read_json, write_text
from dr3.methods import Spec
from dr3.paper.experiments.declaration import Keeping
from dr3.runs import Runs
from dr3.runs.folder import describe_environment
from dr3.runs.outcomes import RETURN, SUCCESS
from dr3.stats import evenly_spaced, forward_fill
from dr3.sweeps import Preparation, Task, seconds_of
from dr3.sweeps.task import RECORD, read_record
from dr3.training.evaluation import CompiledRollouts, Policy, evaluator_for

FORMAT = 1
DOT, COSINE, SRANK, MEAN_Q = "features/dot_product", "features/cosine", "features/srank", "q/data_mean"
NORM, LOSS, TD_ERROR, OUTSIDE = "features/norm", "losses/total", "td/error", "q/outside"
METRICS = (DOT, COSINE, SRANK, MEAN_Q, NORM, LOSS, TD_ERROR)
POINTS = 100  # of a curve at most
LAYER_CHECKPOINTS = 5
VALUE_CHECKPOINTS = 10  # at which Q is held against what rewards allow
RANDOM_EPISODES = 1_000
ONLINE_POINTS = 20
ENVIRONMENT = ("commit", "python", "packages", "processor")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bundle:
    """The evidence of one population."""

    name: str
    record: dict[str, Any]

    @classmethod
    def read(cls, folder: Path, task: Task | Online) -> Bundle | None:
        """The bundle of a task in `folder`; None where there is none of so many updates."""
        file = file_of(folder, task.name)
        if not file.exists():
            return None
        record = read_json(file, format=int, task=dict, members=list, metrics=dict, evaluations=dict)
        if record["format"] > FORMAT:
            raise UserError(f"{file} is of format {record['format']}, and this dr3 knows those up to {FORMAT}.")
        return cls(task.name, record) if record["task"]["steps"] == task.steps else None

    @property
    def seeds(self) -> list[int]:
        return [member["seed"] for member in self.record["members"]]

    @property
    def seconds(self) -> float:
        return self.record["seconds"]

    @cached_property
    def layers(self) -> dict[str, Any] | None:
        """`names`, `steps`, `returns` (members, layers, T) and `unmodified` (members, T) of the re-initialisation."""
        found = self.record["layers"]
        return None if found is None else found | {key: np.array(found[key]) for key in ("returns", "unmodified")}

    def curve(self, metric: str) -> tuple[NDArray[np.int64], Floats]:
        """Steps (T,) and values (members, T) of a metric or an evaluation."""
        kind = next((one for one in ("metrics", "evaluations", "values") if metric in self.record[one]), None)
        if kind is None:
            raise UserError(f"The evidence of {self.name} holds no {metric}.")
        return np.array(self.record[f"{kind}_steps"], np.int64), np.array(self.record[kind][metric], np.float64)


def file_of(folder: Path, name: str) -> Path:
    """Where the bundle of a task lies."""
    return folder / f"{name}.json"


def keep_sweep(folder: Path, out: Path, keeping: Keeping) -> list[str]:
    """Make the bundle of every finished task of a sweep that has none; the names of those that have one then.

    Args:
        folder: The folder of the sweep.
        out: Where bundles go.
        keeping: What is tried again for them.
    """
    kept = []
    for file in sorted(folder.glob(f"*/{RECORD}")):
        task = read_record(file.parent)
        if isinstance(task, Task) and task.finished(file.parent):
            if Bundle.read(out, task) is None:
                keep(str(file.parent), str(file_of(out, task.name)), keeping.to_json())
            kept.append(task.name)
    if not kept:
        raise UserError(f"{folder} holds no finished task of a sweep; name the folder that `dr3 sweep --out` made.")
    return kept


@threadpool_limits.wrap(limits=1, user_api="blas")  # the matrices are small, and other workers have the cores
def keep(run: str, out: str, keeping: dict[str, Any]) -> None:
    """Write the bundle of the finished run in the folder `run`.

    Args:
        run: The folder of the run, with the record of its task.
        out: The file to write.
        keeping: What is tried again for it: the fields of a `Keeping`.
    """
    runs, task, asked = Runs(run), read_record(Path(run)), Keeping(**keeping)
    assert isinstance(task, Task)
    environment = read_json(runs.folder.environment, packages=dict)
    steps, metrics = _curves(runs.steps, runs.metrics, runs.config.metrics_every, runs.config.steps, METRICS)
    episodes = _judged_episodes(runs, asked)
    tried, evaluations = _evaluations(runs, episodes)
    data = load(task.data, discount=task.method.discount)
    measured = measure(runs, data, steps=_some(runs.checkpoints, VALUE_CHECKPOINTS), gradients=False)
    values = {name: measured.columns[name] for name in (OUTSIDE, "q/largest_return") if name in measured.columns}
    record = {
        "format": FORMAT,
        "task": _without_places(task),
        **{key: environment.get(key) for key in ENVIRONMENT},
        "seconds": round(seconds_of(Path(run)), 1),
        "data": {"name": runs.config.data.name, "rows": len(data), "world": data.world},
        "limits": replay_limits(asked.replay) if asked.replay else None,
        "members": [{"algorithm": member.algorithm, "seed": member.seed} for member in runs.members],
        "diverged": runs.status["diverged"],
        "metrics_steps": steps,
        "metrics": metrics,
        "evaluations_steps": tried,
        "evaluations": evaluations,
        "episodes": {step: [one.get("returns") for one in members] for step, members in episodes.items()},
        "values_steps": measured.steps.tolist(),
        "values": values,
        "layers": _layers(runs, asked) if asked.layers else None,
    }
    write_text(Path(out), _lines(_rounded(for_json(record))))


@dataclass(frozen=True)
class Online:
    """An agent that learns by acting, in the place of a population: its bundle holds the returns that it earned."""

    env: str
    regularizer: str
    seed: int
    steps: int
    needs: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        return re.sub(r"[^A-Za-z0-9.+=_-]+", "_", f"online-{self.env}-{self.regularizer}-{self.seed}-{self.steps}")

    @property
    def seeds(self) -> tuple[int, ...]:
        return (self.seed,)

    @property
    def members(self) -> tuple[int, ...]:
        return (self.seed,)

    def bundle(self, file: Path) -> Preparation:
        """What makes its bundle."""
        return Preparation(str(file), keep_online, {"out": str(file), **dataclasses.asdict(self)})


def keep_online(env: str, regularizer: str, seed: int, steps: int, out: str) -> None:
    """Let a DQN learn online, as the replays of the laptop scale are made, and write the returns of its episodes.

    Args:
        env: The game.
        regularizer: As a word: none, dr3:0.03.
        seed: Everything random follows from it.
        steps: Of the game.
        out: The bundle.
    """
    from dr3.collect.online_dqn import DQNSchedule, collect_dqn
    from dr3.regularizers.parse import parse_regularizer

    began, replay = time.monotonic(), Path(out).with_suffix(".npz")
    schedule = DQNSchedule(epsilon=0.01, epsilon_steps=5_000)
    call: dict[str, Any] = {"regularizer": parse_regularizer(regularizer), "schedule": schedule, "progress": False}
    data = load(replay) if replay.exists() else collect_dqn(env, steps=steps, seed=seed, out=replay, **call)
    _, episode = np.unique(data.episodes, return_inverse=True)
    returns, ends = np.bincount(episode, data.rewards), np.cumsum(np.bincount(episode))  # in order of their ends
    part = np.minimum(ends * ONLINE_POINTS // len(data), ONLINE_POINTS - 1)
    means = [returns[part == number].mean() if (part == number).any() else np.nan for number in range(ONLINE_POINTS)]
    name = "dqn" if regularizer == "none" else f"dqn+{regularizer}"
    record = {
        "format": FORMAT,
        "task": {"env": env, "regularizer": regularizer, "seed": seed, "steps": steps},
        **{key: value for key, value in describe_environment().items() if key in ENVIRONMENT},
        "seconds": round(time.monotonic() - began, 1),
        "limits": {"random": random_return(env), "replay": float(returns.mean())},
        "members": [{"algorithm": name, "seed": seed}],
        "metrics_steps": [],
        "metrics": {},
        "evaluations_steps": [round(steps * (number + 1) / ONLINE_POINTS) for number in range(ONLINE_POINTS)],
        "evaluations": {RETURN: forward_fill(np.array([means]))},
        "values": {},
        "layers": None,
    }
    write_text(Path(out), _lines(_rounded(for_json(record))))
    replay.unlink()


def _lines(record: dict[str, Any]) -> str:
    """A line for each field: small, and still to be looked at."""
    fields = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in record.items())
    return f"{{\n{fields}\n}}\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, np.ndarray):
        return _rounded(for_json(value.tolist()))
    if isinstance(value, float):
        short = float(f"{value:.5g}")
        return int(short) if short.is_integer() and abs(short) < 1e6 else short
    return value


def _without_places(task: Task) -> dict[str, Any]:
    """Its settings, with data and runs by their names: where they lie is another place on another machine."""
    record = task.to_json()
    plain = "+".join(Path(part).name for part in task.data.split("+"))
    record |= {"data": task.alias or plain, "init_from": task.init_from and Path(task.init_from).name}
    return {key: value for key, value in record.items() if key not in ("needs", "alias")}


def _curves(
    steps: NDArray[np.int64], rows: dict[str, Floats], every: int, end: int, names: Sequence[str]
) -> tuple[list[int], dict[str, Floats]]:
    """Curves to the end, also of members that diverged: they stay at what was last known of them."""
    due = np.union1d(steps, [*range(0, end, every), end])
    due = due[np.unique(np.append(0, evenly_spaced(len(due), POINTS)))]
    latest = np.searchsorted(steps, due, side="right") - 1
    return due.tolist(), {name: forward_fill(rows[name])[:, latest] for name in names if name in rows}


def _evaluations(runs: Runs, episodes: dict[int, list[dict[str, Any]]]) -> tuple[list[int], dict[str, Floats]]:
    """Means over episodes, those of the judged checkpoints over the more episodes that they were tried in."""
    every, end = runs.config.evaluate_every, runs.config.steps
    rows = {name: values.copy() for name, values in runs.evaluations.items()}
    place = {int(step): number for number, step in enumerate(runs.evaluation_steps)}
    for step, members in episodes.items():
        for number, outcome in enumerate(members):
            for name in rows:
                if step in place and name in outcome:
                    rows[name][number, place[step]] = outcome[name]
    return _curves(runs.evaluation_steps, rows, every, end, (RETURN, SUCCESS)) if rows else ([], {})


def _judged_episodes(runs: Runs, keeping: Keeping) -> dict[int, list[dict[str, Any]]]:
    """By judged step, the outcome of each member; {} for one that had diverged."""
    if runs.config.evaluation is None or not len(runs.evaluation_steps):
        return {}
    name = runs.config.evaluation.get("world") or runs.config.evaluation.get("env")
    # What a gridworld says is exact; where nothing else is asked for, the episodes that there were are enough.
    again = keeping.episodes > runs.config.evaluation.get("episodes", keeping.episodes)
    evaluator = evaluator_for(name, episodes=keeping.episodes) if again and name else None
    saved, found = set(runs.checkpoints), {}
    for share in keeping.judged:
        step = int(runs.evaluation_steps[-1 if share == 1 else _at(runs.evaluation_steps, share * runs.config.steps)])
        outcomes: list[dict[str, Any]] = []
        critics = runs.critics(step) if evaluator is not None and step in saved else []
        for number, member in enumerate(runs.members):
            frozen = runs.status["diverged"].get(str(number), step + 1)
            if frozen <= step:
                outcomes.append({})
            elif evaluator is not None and critics:
                policy = Policy(member.method, critics[number], runs.spec)
                asked = {"seed": member.seed, "step": step, "discount": member.method.discount}
                outcomes.append(evaluator(policy, **asked))
            else:
                row = runs.evaluation_steps.tolist().index(step)
                outcomes.append({"returns": runs.returns[number][row]})
        found[step] = outcomes
    return found


def _at(steps: NDArray[np.int64], step: float) -> int:
    """The first evaluation from `step` on, the last one where there is none."""
    return min(int(np.searchsorted(steps, step)), len(steps) - 1)


def _some(steps: Sequence[int], count: int) -> list[int]:
    """At most so many of them, evenly spaced, with the last."""
    return [steps[number] for number in evenly_spaced(len(steps), min(count, len(steps)))]


def _layers(runs: Runs, keeping: Keeping) -> dict[str, Any]:
    steps = _some([step for step in runs.checkpoints if step > 0], LAYER_CHECKPOINTS)
    test = reinitialise(runs, steps=steps)
    return {"names": test.layers, "steps": steps, "returns": test.returns, "unmodified": test.unmodified}


@cache
def replay_limits(file: str) -> dict[str, float]:
    """Mean returns of an agent that acts at random in the replay's world, and over the whole replay."""
    data = load(file)
    _, episode = np.unique(data.episodes, return_inverse=True)
    return {"random": random_return(str(data.world)), "replay": float(np.bincount(episode, data.rewards).mean())}


@cache
def random_return(world: str) -> float:
    """The mean return of an agent that acts at random in a compiled world, over a thousand episodes."""
    from dr3.data import DiscreteActions
    from dr3.envs import minatar
    from dr3.methods import DQN

    game, method = minatar(world), DQN(hidden=(1,))
    spec = Spec(game.observation_shape, DiscreteActions(game.actions))
    critic = method.model(method.init(spec, jax.random.key(0)))
    outcome = CompiledRollouts(game, RANDOM_EPISODES, epsilon=1.0)(
        Policy(method, critic, spec), seed=0, step=0, discount=1.0
    )
    return float(outcome[RETURN])
