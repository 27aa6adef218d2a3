"""The runs behind the gridworld part of cures.md: python docs/results/cures_gridworlds.py --help

The protocol is in docs/cures.md. Every run leaves one line in docs/evidence/cures, and is not done again where its line
is there; all share one process, so that remedies that differ in numbers alone share a compiled program. Programs are
kept in the user's cache: methods share some, and so does the next start.
"""

from __future__ import annotations

import csv
import dataclasses
import os
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro

import dr3
from dr3.compiled_programs import keep_compiled_programs
from dr3.cures.remedies import treatment_for
from dr3.diagnostics import select
from dr3.paper.experiments.gridworld import WORLDS
from dr3.paper.experiments.scoring import Exact
from dr3.runs.outcomes import RETURN
from dr3.stats import forward_fill

EVIDENCE = Path(__file__).parents[1] / "evidence" / "cures"
UPDATES, EVALUATIONS, RATE = 2_000, 10, 5e-3
SHARED: dict[str, Any] = {"hidden": (64, 64), "discount": 0.95, "batch_size": 64, "target_period": 50}
METHODS = {"dqn": dr3.DQN, "cql": dr3.CQL, "rem": dr3.REM}
SUPPORT = (0.0, 20.0)  # of the histogram: rewards of all four worlds are between 0 and 1
QUANTILES = 20  # their loss takes the square of it
TUNING_SEED = 100

# A remedy with a number of its own has three of it; all others have three learning rates.
NUMBERS = {
    "dr3": ("dr3:0.003", "dr3:0.03", "dr3:0.3"),
    "dr3-next": ("dr3:0.003:stop_gradient=next", "dr3:0.03:stop_gradient=next", "dr3:0.3:stop_gradient=next"),
    "norm": ("norm:0.003", "norm:0.03", "norm:0.3"),
    "beer": ("beer:0.0001", "beer:0.001", "beer:0.01"),
    "l2": ("l2:1e-06", "l2:1e-05", "l2:0.0001"),
    "l2-init": ("l2-init:1e-06", "l2-init:1e-05", "l2-init:0.0001"),
    "chain": ("chain:1", "chain:10", "chain:100"),
    "redo": ("redo_every=100", "redo_every=400", "redo_every=1600"),
    "slow-target": ("target_period=100", "target_period=200", "target_period=400"),
}
RATES = ("learning_rate=0.00167", "learning_rate=0.005", "learning_rate=0.015")
SWITCHES = ("none", "layer-norm", "unit-features", "hypersphere", "hl-gauss", "quantiles", "target-clip")
TOGETHER = ("dr3+layer-norm",)
ONCE_TUNED = (*SWITCHES, *NUMBERS)
REMEDIES = (*ONCE_TUNED, *TOGETHER)
DEFAULT = 1  # the place of the default among three settings

COLUMNS = ("remedy", "setting", "world", "seed", "score", "peak", "dot_product", "cosine", "norm", "srank", "q_mean")
COLUMNS += ("beer_can_act", "diverged", "early_stop", "early_stop_step")
METRICS = {
    "dot_product": "features/dot_product",
    "cosine": "features/cosine",
    "norm": "features/norm",
    "srank": "features/srank",
    "q_mean": "q/data_mean",
    "beer_can_act": "losses/beer_can_act",
}


@dataclass(frozen=True)
class Options:
    """What to run; what is there is left alone."""

    methods: tuple[str, ...] = ("dqn", "cql")
    """dqn, cql, rem."""

    seeds: int = 20
    """Data sets of each world, each with weights of its own."""


Row = dict[str, str]
Key = tuple[str, str, str, int]  # remedy, setting, world, seed


def main(options: Options) -> None:
    keep_compiled_programs()
    jax.config.update("jax_compilation_cache_dir", os.environ.get("JAX_COMPILATION_CACHE_DIR"))
    for method in options.methods:
        done = read(method, "tuning")
        for remedy in ONCE_TUNED:
            if applies(remedy, method):
                for setting in settings_of(remedy):
                    carry_out(method, "tuning", done, remedy, setting, TUNING_SEED)
    chosen = {method: choices(read(method, "tuning")) for method in options.methods}
    done = {method: read(method, "runs") for method in options.methods}
    for seed in range(options.seeds):
        for method in options.methods:
            for remedy in REMEDIES:
                if applies(remedy, method):
                    setting = " ".join(chosen[method][part] for part in remedy.split("+"))
                    carry_out(method, "runs", done[method], remedy, setting, seed)


def applies(remedy: str, method: str) -> bool:
    """The heads of REM are of single values."""
    return method != "rem" or remedy not in ("hl-gauss", "quantiles")


def settings_of(remedy: str) -> tuple[str, ...]:
    """The three that a remedy is tuned over, the default in the middle."""
    return NUMBERS.get(remedy, RATES)


def choices(tuning: list[Row]) -> dict[str, str]:
    """Of every remedy the setting with the highest mean score over the worlds; of equal ones the default, then the
    first."""
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in tuning:
        scores[row["remedy"], row["setting"]].append(float(row["score"]))
    found = {}
    for remedy in ONCE_TUNED:
        own = [one for one in settings_of(remedy) if (remedy, one) in scores]
        if own:
            default = settings_of(remedy)[DEFAULT]
            found[remedy] = max(own, key=lambda one: (round(np.mean(scores[remedy, one]), 9), one == default))
    return found


def carry_out(method: str, part: str, done: list[Row], remedy: str, setting: str, seed: int) -> None:
    """One remedy in all four worlds, except where its line is there."""
    there = {(row["remedy"], row["setting"], row["world"], int(row["seed"])) for row in done}
    for world in WORLDS:
        if (remedy, setting, world, seed) not in there:
            row = run(method, (remedy, setting, world, seed))
            done.append(row)
            append(method, part, row)
            print(method, part, *row.values(), flush=True)


def run(method: str, key: Key) -> Row:
    """Train one member, and what is kept of it."""
    remedy, setting, world, seed = key
    data = dr3.load(f"{world}:seed={seed}", discount=SHARED["discount"])
    trained, regularizer = arm(METHODS[method](learning_rate=RATE, **SHARED), remedy, setting, data)
    with tempfile.TemporaryDirectory() as out:
        runs = dr3.train(
            data,
            trained,
            regularizer=regularizer,
            steps=UPDATES,
            seeds=(seed,),
            out=out,
            metrics_every=UPDATES,
            evaluate_every=UPDATES // EVALUATIONS,
            progress=False,
        )
        low, high = Exact(world, SHARED["discount"]).limits()
        scores = 100 * (forward_fill(runs.evaluations[RETURN])[0] - low) / (high - low)
        row = dict.fromkeys(COLUMNS, "")
        row |= {"remedy": remedy, "setting": setting, "world": world, "seed": str(seed)}
        row |= {"score": f"{scores[-1]:.3f}", "peak": f"{scores.max():.3f}"}
        row |= {
            name: f"{forward_fill(runs.metrics[metric])[0, -1]:.4g}"
            for name, metric in METRICS.items()
            if metric in runs.metrics
        }
        row["diverged"] = str(len(runs.status["diverged"]))
        if remedy == "none":
            step = select(runs, "healthy", data).choices[0].step
            step = UPDATES if step is None else step
            row["early_stop"] = f"{scores[list(runs.evaluation_steps).index(step)]:.3f}"
            row["early_stop_step"] = str(step)
    return row


def arm(base: Any, remedy: str, setting: str, data: Any) -> tuple[Any, Any]:
    """The method and the term of a remedy at its setting; that of two together is both, with a space between."""
    words = []
    for name, one in zip(remedy.split("+"), setting.split(" "), strict=True):
        if name in NUMBERS and "=" not in one.partition(":")[0]:
            words.append(one)
            continue
        key, _, value = one.partition("=")
        base = dataclasses.replace(base, **{key: type(getattr(base, key))(value)})
        if name not in NUMBERS:
            words.append(name)
    found = treatment_for("+".join(words or ["none"]), base, data)
    method = found.method
    for name, own in {"hl-gauss": {"support": SUPPORT}, "quantiles": {"quantiles": QUANTILES}}.items():
        if name in words:
            method = dataclasses.replace(method, **own)  # ty: ignore[invalid-argument-type]
    return method, found.regularizer


def file_of(method: str, part: str) -> Path:
    return EVIDENCE / f"gridworlds-{method}-{part}.csv"


def read(method: str, part: str) -> list[Row]:
    """The lines that are there."""
    path = file_of(method, part)
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(method: str, part: str, row: Row) -> None:
    path = file_of(method, part)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    main(tyro.cli(Options))
