"""The runs behind the gridworld part of cures.md: python docs/results/cures_gridworlds.py --help

The protocol is in docs/cures.md. Every run leaves one line in docs/evidence/cures, and is not done again where its line
is there; all share one process, so that remedies that differ in numbers alone share a compiled program. Programs are
kept in the user's cache: methods share some, and so does the next start.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any

import tyro
from cures_evidence import Key, Part, Row, keep_programs, row_of

import dr3
from dr3.paper.experiments.gridworld import WORLDS
from dr3.paper.experiments.scoring import Exact

UPDATES, EVALUATIONS, RATE = 2_000, 10, 5e-3
SHARED: dict[str, Any] = {"hidden": (64, 64), "discount": 0.95, "batch_size": 64, "target_period": 50}
METHODS = {"dqn": dr3.DQN, "cql": dr3.CQL, "rem": dr3.REM}
TUNING_SEED = 100

GRIDWORLDS = Part(
    "gridworlds",
    tuple(WORLDS),
    # A remedy with a number of its own has three of it; all others have three learning rates.
    numbers={
        "dr3": ("dr3:0.003", "dr3:0.03", "dr3:0.3"),
        "dr3-next": ("dr3:0.003:stop_gradient=next", "dr3:0.03:stop_gradient=next", "dr3:0.3:stop_gradient=next"),
        "norm": ("norm:0.003", "norm:0.03", "norm:0.3"),
        "beer": ("beer:0.0001", "beer:0.001", "beer:0.01"),
        "l2": ("l2:1e-06", "l2:1e-05", "l2:0.0001"),
        "l2-init": ("l2-init:1e-06", "l2-init:1e-05", "l2-init:0.0001"),
        "chain": ("chain:1", "chain:10", "chain:100"),
        "redo": ("redo_every=100", "redo_every=400", "redo_every=1600"),
        "slow-target": ("target_period=100", "target_period=200", "target_period=400"),
    },
    switches=("none", "layer-norm", "unit-features", "hypersphere", "hl-gauss", "quantiles", "target-clip"),
    together=("dr3+layer-norm",),
    tuning=tuple((world, TUNING_SEED) for world in WORLDS),
    rates=("learning_rate=0.00167", "learning_rate=0.005", "learning_rate=0.015"),
    # Rewards of all four worlds are between 0 and 1; the loss of quantiles takes the square of how many there are.
    sets={"hl-gauss": {"support": (0.0, 20.0)}, "quantiles": {"quantiles": 20}},
)


@dataclass(frozen=True)
class Options:
    """What to run; what is there is left alone."""

    methods: tuple[str, ...] = ("dqn", "cql")
    """dqn, cql, rem."""

    seeds: int = 20
    """Data sets of each world, each with weights of its own."""


def main(options: Options) -> None:
    keep_programs()
    part = GRIDWORLDS
    for method in options.methods:
        tuned = [one for one in part.once_tuned if applies(one, method)]
        keys = [(one, setting, *place) for one in tuned for setting in part.settings_of(one) for place in part.tuning]
        part.carry_out(method, "tuning", keys, run)
    for seed in range(options.seeds):
        for method in options.methods:
            chosen = part.choices(method)
            keys = [
                (one, " ".join(chosen[half] for half in one.split("+")), world, seed)
                for one in part.remedies
                if applies(one, method)
                for world in part.worlds
            ]
            part.carry_out(method, "runs", keys, run)


def applies(remedy: str, method: str) -> bool:
    """The heads of REM are of single values."""
    return method != "rem" or remedy not in ("hl-gauss", "quantiles")


def run(method: str, key: Key) -> Row:
    """Train one member, and what is kept of it."""
    remedy, setting, world, seed = key
    data = dr3.load(f"{world}:seed={seed}", discount=SHARED["discount"])
    trained, regularizer = GRIDWORLDS.arm(METHODS[method](learning_rate=RATE, **SHARED), remedy, setting, data)
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
        return row_of(runs, key, Exact(world, SHARED["discount"]).limits(), data)


if __name__ == "__main__":
    main(tyro.cli(Options))
