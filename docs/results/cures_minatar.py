"""The runs behind the MinAtar part of cures.md: python docs/results/cures_minatar.py --help

The protocol is in docs/cures.md. Replays are made first, as `dr3 reproduce` makes them, and those that are there are
taken. Ctrl-C, or a kill at any moment, loses nothing: the same command goes on, inside a run too. A run that has come
to its end leaves one line in docs/evidence/cures, and its folder is removed.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import tyro
from cures_evidence import COLUMNS, PUBLISHED, Key, Part, Row, keep_programs, row_of

import dr3
from dr3.envs import minatar
from dr3.paper.experiments import atari
from dr3.paper.experiments.bundle import replay_limits
from dr3.training.evaluation import CompiledRollouts, Policy

SHARE, METHOD = "1%", "dqn"
UPDATES, EVALUATIONS = atari.UPDATES[SHARE], 10
EPISODES, AT_THE_END = 20, 100  # of each try
SEEDS = 5

MINATAR = Part(
    "minatar",
    atari.GAMES,
    # Published numbers in the middle: those of `dr3 cure`.
    numbers={
        "dr3": ("dr3:0.003", "dr3:0.03", "dr3:0.3"),
        "norm": ("norm:0.003", "norm:0.03", "norm:0.3"),
        "beer": ("beer:0.0001", "beer:0.001", "beer:0.01"),
        "l2-init": ("l2-init:1e-06", "l2-init:1e-05", "l2-init:0.0001"),
        "chain": ("chain:1", "chain:10", "chain:100"),
        "redo": ("redo_every=250", "redo_every=1000", "redo_every=4000"),
        "slow-target": ("target_period=4000", "target_period=8000", "target_period=16000"),
        "small-steps": ("learning_rate=5e-05", "learning_rate=3.3e-05", "learning_rate=1e-05"),
    },
    switches=("none", "layer-norm", "unit-features", "hl-gauss", "target-clip"),
    together=("dr3+layer-norm",),
    tuning=tuple((atari.TUNING_GAME, seed) for seed in (100, 101)),
    rates=PUBLISHED,
    columns=(*COLUMNS, "return"),
)
# What the page's questions are about comes first, with all games and seeds; then the other remedies, one by one.
FIRST = ("none", "dr3", "layer-norm", "dr3+layer-norm", "norm", "unit-features")


@dataclass(frozen=True)
class Options:
    """Where things are; what is done is left alone."""

    data: Path = Path("data")
    """A folder of replays, as of dr3 reproduce: breakout-0.npz, breakout-1.npz, …"""

    out: Path = Path("runs/cures-minatar")
    """A folder for runs that have not come to their end."""

    remedies: tuple[str, ...] = ()
    """Only these."""

    dry_run: bool = False
    """Only say how many runs are to be made."""


def main(options: Options) -> None:
    keep_programs()
    part = MINATAR
    for group in (FIRST, *((one,) for one in part.remedies if one not in FIRST)):
        wanted = [one for one in group if one in (options.remedies or part.remedies)]
        tuned = [one for one in wanted if len(part.settings_of(one)) > 1]
        tuning = [(one, setting, *place) for one in tuned for setting in part.settings_of(one) for place in part.tuning]
        if options.dry_run:
            kinds = {"tuning": len(tuning), "runs": len(wanted) * len(part.worlds) * SEEDS}
            for kind, count in kinds.items():
                there = sum(row["remedy"] in wanted for row in part.read(METHOD, kind))
                print(f"{', '.join(wanted)}: {kind}, {there} of {count} are there")
            continue
        part.carry_out(METHOD, "tuning", tuning, partial(trained, options), partial(tidied, options))
        chosen = part.choices(METHOD)
        judged = [
            (one, " ".join(chosen[half] for half in one.split("+")), game, seed)
            for seed in range(SEEDS)
            for one in wanted
            for game in part.worlds
        ]
        part.carry_out(METHOD, "runs", judged, partial(trained, options), partial(tidied, options))


def trained(options: Options, method: str, key: Key) -> Row:
    """Train one member, or go on with it, and what is kept of it."""
    remedy, setting, world, seed = key
    game = atari.MINATAR[world]
    base = atari.agent(method.upper(), SHARE, "laptop")[0]
    # Judged seeds take two replays in turn, each seed of tuning has one of its own.
    number = seed % atari.REPLAYS if seed < SEEDS else seed
    replay = options.data / f"{game.rpartition('/')[2]}-{number}.npz"
    if not replay.exists():
        replay.parent.mkdir(parents=True, exist_ok=True)
        atari.collect_replay(game, number, str(replay))
    data = dr3.load(f"{replay}:replay={SHARE}", discount=base.discount)
    changed, regularizer = MINATAR.arm(base, remedy, setting, data)
    runs = dr3.train(
        data,
        changed,
        regularizer=regularizer,
        steps=UPDATES,
        seeds=(seed,),
        env=Tries(game),
        out=folder_of(options, key),
        metrics_every=UPDATES // (2 * EVALUATIONS),
        evaluate_every=UPDATES // EVALUATIONS,
    )
    return row_of(runs, key, limits_of(str(replay)), data, MINATAR.columns)


def tidied(options: Options, key: Key) -> None:
    """Its line is kept: what it was made from is large."""
    shutil.rmtree(folder_of(options, key))


def folder_of(options: Options, key: Key) -> Path:
    return options.out / re.sub(r"[^A-Za-z0-9.+=_-]+", "_", "-".join(map(str, key)))


@cache
def limits_of(replay: str) -> tuple[float, float]:
    """Mean returns of a random agent and over the whole replay."""
    found = replay_limits(replay)
    return found["random"], found["replay"]


@dataclass(frozen=True)
class Tries:
    """Episodes side by side: a few on the way, more at the end, which is judged."""

    game: str

    def __call__(self, policy: Policy, *, seed: int, step: int, discount: float) -> dict[str, Any]:
        episodes = AT_THE_END if step == UPDATES else EPISODES
        return CompiledRollouts(minatar(self.game), episodes)(policy, seed=seed, step=step, discount=discount)

    def describe(self) -> dict[str, Any]:
        return {"kind": "tries", "world": self.game, "episodes": EPISODES, "at_the_end": AT_THE_END}


if __name__ == "__main__":
    main(tyro.cli(Options))
