"""The Atari family: the paper's games at `paper` scale, MinAtar's at `laptop`, gridworlds at `smoke`.

An arm is called as in the paper's legends: `CQL`, `CQL + DR3`, `REM + Δ'`, `DQN + label noise`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dr3.methods import DQN
from dr3.paper.atari import atari
from dr3.paper.experiments.declaration import Arm, Design, Folders, Scale, Scoring
from dr3.paper.experiments.scoring import Exact, Published, Replays
from dr3.paper.presets import ATARI_DATA, TUNING_GAMES, Atari
from dr3.paper.tables import table
from dr3.regularizers import DR3, LabelNoiseDR3, Regularizer
from dr3.sweeps import Preparation, Task

SHARES = {"1%": "1%", "5%": "5%", "10%": "first-10%"}  # the paper's data sets, and which part of a replay each is
FIVE = TUNING_GAMES["appendix E.3"]  # the games of the paper's figures of single games
TWO = ("Asterix", "Breakout")  # those of its figures of stability

MINATAR = {"Asterix": "minatar/asterix", "Breakout": "minatar/breakout", "SpaceInvaders": "minatar/space_invaders"}
MINATAR_STEPS = 1_000_000  # of each replay
REPLAYS = 2  # of each game; seeds take them in turn, as the paper's five runs take its five
GRIDWORLDS = ("grid16smoothobs", "grid16randomobs")

NOTE: Mapping[Scale, str] = {
    "smoke": "Two gridworlds and a tiny network stand in for the games: a few updates only show that all runs.",
    "laptop": "MinAtar's Asterix, Breakout and Space Invaders stand in for Atari's games. Data are parts of two "
    "replays of 1,000,000 steps that an online DQN makes here, which the seeds take in turn. Scores: 0 is the random "
    "agent that a replay begins with, 100 the mean return over the replay.",
    "paper": f"A policy is tried in 10 episodes, where the paper takes {Atari().evaluation_steps:,} steps (table E.1).",
}
NEEDS: Mapping[Scale, str] = {
    "smoke": "nothing",
    "laptop": "two MinAtar replays of three games, made first",
    "paper": "the DQN replay logs of Atari's games in DATA/dqn-replay",
}


@dataclass(frozen=True)
class Size:
    """How large the family is at one scale."""

    steps: Mapping[str, int]  # by share of the data
    seeds: Mapping[str, int]
    evaluations: int  # over training
    episodes: int
    coefficients: Mapping[str, float]  # c0 by base method; what is not here is the paper's
    changed: Mapping[str, Any]  # hyperparameters that are not the paper's


SIZES: dict[Scale, Size] = {
    "smoke": Size(
        steps=dict.fromkeys(SHARES, 4),
        seeds=dict.fromkeys(SHARES, 2),
        evaluations=2,
        episodes=1,
        coefficients={},
        changed={"network": "auto", "hidden": (8, 8), "batch_size": 128, "target_period": 2, "heads": 3},
    ),
    "laptop": Size(
        steps=dict.fromkeys(SHARES, 8_000),
        seeds={"1%": 3, "5%": 2, "10%": 2},
        evaluations=20,
        episodes=10,
        coefficients={"dqn": 0.01, "cql": 0.01, "rem": 0.001},
        changed={"network": "auto", "hidden": (128,), "learning_rate": 2.5e-4, "target_period": 200},
    ),
    "paper": Size(
        steps={share: data.gradient_steps for share, data in ATARI_DATA.items()},
        seeds=dict.fromkeys(SHARES, Atari().seeds),
        evaluations=Atari().averaged_checkpoints,
        episodes=10,
        coefficients={},
        changed={},
    ),
}


@dataclass(frozen=True)
class Compared:
    """A design: these labels, on these parts of the replays, in these of the paper's games (all of them if None).

    `paper_steps` are the updates at `paper` scale where they are others than for these data elsewhere.
    """

    labels: tuple[str, ...]
    shares: tuple[str, ...] = ("5%",)
    games: tuple[str, ...] | None = None
    paper_steps: int | None = None

    def __call__(self, scale: Scale, folders: Folders) -> Design:
        steps = self.paper_steps if scale == "paper" else None
        worlds = worlds_at(scale, self.games)
        arms = [
            Arm(
                label,
                called(world, scale),
                tasks(label, world, share, scale, folders, steps),
                scoring(world, scale, folders),
                share,
            )
            for share in self.shares
            for world in worlds
            for label in self.labels
        ]
        return Design(tuple(arms), preparations=preparations(worlds, scale, folders), note=NOTE[scale])


@dataclass(frozen=True)
class FromGoodSolution:
    """A design: training goes on from a critic that is good and has small dot products.

    The paper does not say where its own came from. Here it is the last one of CQL + DR3 on the same data, of the first
    seed; every run goes on from it, with batches of its own.
    """

    labels: tuple[str, ...]
    share: str = "5%"

    def __call__(self, scale: Scale, folders: Folders) -> Design:
        arms, sources = [], []
        worlds = worlds_at(scale, TWO)
        for world in worlds:
            source = tasks("CQL + DR3", world, self.share, scale, folders)[0]
            sources.append(source)
            start = f"{folders.runs / source.name}@{source.steps}:0"
            seeds = tuple(range(SIZES[scale].seeds[self.share]))
            for label in self.labels:
                fresh = tasks(label, world, self.share, scale, folders)[0]
                needs = tuple(dict.fromkeys((*fresh.needs, source.name)))
                again = dataclasses.replace(fresh, seeds=seeds, init_from=start, needs=needs)
                arms.append(Arm(label, called(world, scale), (again,), scoring(world, scale, folders)))
        return Design(tuple(arms), tuple(sources), preparations(worlds, scale, folders), NOTE[scale])


def worlds_at(scale: Scale, games: Sequence[str] | None) -> tuple[str, ...]:
    """What stands for the paper's games."""
    if scale == "smoke":
        return GRIDWORLDS
    all_games = tuple(MINATAR) if scale == "laptop" else table("atari-normalisers").rows
    return tuple(game for game in all_games if games is None or game in games)


def called(world: str, scale: Scale) -> str:
    """MinAtar's games are others than Atari's of the same name, with other returns: no number of one is the other's."""
    return f"MinAtar {world}" if scale == "laptop" else world


def scoring(world: str, scale: Scale, folders: Folders) -> Scoring:
    match scale:
        case "smoke":
            return Exact(world)
        case "laptop":
            return Replays(tuple(replay(world, number, folders) for number in range(REPLAYS)))
    return Published(world)


def tasks(
    label: str, world: str, share: str, scale: Scale, folders: Folders, steps: int | None = None
) -> tuple[Task, ...]:
    """One population for each data set: all seeds that learn from it."""
    method, regularizer = agent(label, share, scale)
    size = SIZES[scale]
    steps = steps or size.steps[share]
    by_data: dict[str, list[int]] = {}
    for seed in range(size.seeds[share]):
        by_data.setdefault(data(world, share, seed, scale, folders), []).append(seed)
    made = {one.makes: one.name for one in preparations((world,), scale, folders)}
    return tuple(
        Task(
            word,
            method,
            (regularizer,),
            tuple(seeds),
            steps=steps,
            episodes=size.episodes,
            evaluate_every=max(1, steps // size.evaluations),
            metrics_every=max(1, steps // (2 * size.evaluations)),
            needs=(made[file],) if (file := word.partition(":")[0]) in made else (),
        )
        for word, seeds in by_data.items()
    )


def agent(label: str, share: str, scale: Scale) -> tuple[DQN, Regularizer | None]:
    """The paper's agent, with what `SIZES` changes at this scale."""
    base, _, term = label.partition(" + ")
    method, published = atari(base.lower(), SHARES[share], dr3=True)  # ty: ignore[invalid-argument-type]
    assert published is not None
    size, known = SIZES[scale], {field.name for field in dataclasses.fields(method)}
    method = dataclasses.replace(method, **{key: value for key, value in size.changed.items() if key in known})
    c0 = size.coefficients.get(base.lower(), published.coefficient)
    terms: dict[str, Regularizer | None] = {
        "": None,
        "DR3": DR3(c0),
        "Δ'": DR3(c0, stop_gradient="next"),
        "label noise": LabelNoiseDR3(c0, solver="steps" if scale == "paper" else "fixed_point"),
    }
    return method, terms[term]


def data(world: str, share: str, seed: int, scale: Scale, folders: Folders) -> str:
    """The word for what a seed learns from."""
    match scale:
        case "smoke":
            return world
        case "laptop":
            return f"{replay(world, seed % REPLAYS, folders)}:replay={SHARES[share]}"
    return f"{folders.data / 'dqn-replay' / world / str(seed + 1) / 'replay_logs'}:replay={SHARES[share]}"


def replay(world: str, number: int, folders: Folders) -> str:
    return str(folders.data / f"{MINATAR[world].rpartition('/')[2]}-{number}.npz")


def preparations(worlds: Sequence[str], scale: Scale, folders: Folders) -> tuple[Preparation, ...]:
    """The replays that are made here: `dr3 data collect dqn --env WORLD --steps 1e6 --seed N --out FILE`."""
    if scale != "laptop":
        return ()
    return tuple(
        Preparation(
            file,
            "dr3.collect.replay:collect_dqn",
            {"env": MINATAR[world], "steps": MINATAR_STEPS, "seed": number, "out": file},
        )
        for world in worlds
        for number in range(REPLAYS)
        if (file := replay(world, number, folders))
    )
