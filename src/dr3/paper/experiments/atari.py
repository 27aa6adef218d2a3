"""The Atari family: the paper's games at `paper` scale, MinAtar's at `laptop`, gridworlds at `smoke`.

An arm is called as in the paper's legends: `CQL`, `CQL + DR3`, `REM + Δ'`, `DQN + label noise`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dr3.collect.online_dqn import DQNSchedule, collect_dqn
from dr3.methods import SARSA, TD, Supervised
from dr3.methods.discrete import DiscreteMethod
from dr3.paper.atari import atari
from dr3.paper.experiments.declaration import Arm, Design, Folders, Keeping, Scale, Scoring
from dr3.paper.experiments.scoring import Exact, Published, Replays
from dr3.paper.presets import ATARI_DATA, TUNING_GAMES, AtariSettings
from dr3.paper.tables import table
from dr3.regularizers import DR3, FeatureNorm, LabelNoiseDR3, Regularizer
from dr3.sweeps import Preparation, Task

SHARES = {"1%": "1%", "5%": "5%", "10%": "first-10%"}  # the paper's data sets, and which part of a replay each is
FIVE = TUNING_GAMES["appendix E.3"]  # the games of the paper's figures of single games
TWO = ("Asterix", "Breakout")  # those of its figures of stability

# --- The laptop scale. Its settings were chosen on the tuning game, by base methods alone (docs/reproduce.md). ---

LEARNING_RATE = 1e-4
ALPHA = 0.1  # CQL's, on all data
COEFFICIENTS = {"dqn": 0.03, "cql": 0.03, "rem": 0.001}  # c0

MINATAR = {
    "Asterix": "minatar/asterix",
    "Breakout": "minatar/breakout",
    "Seaquest": "minatar/seaquest",
    "Space Invaders": "minatar/space_invaders",
}
TUNING_GAME = "Space Invaders"  # judged only where an experiment names it
GAMES = tuple(game for game in MINATAR if game != TUNING_GAME)
MINATAR_STEPS = 1_000_000  # of each replay
EXPLORING = DQNSchedule(epsilon=0.01, epsilon_steps=5_000)  # it ends as early as Dopamine's: within 0.5 % of the steps
REPLAYS = 2  # of each game; seeds take them in turn, as the paper's five runs take its five
# On 1 % of a replay as many as base methods need to rise and fall, 200 copies of the target network; on 5 % and the
# first 10 % the paper's passes over the data, 160 and 80.
UPDATES = {"1%": 400_000, "5%": 250_000, "10%": 250_000}
SOLUTION_SEED = 50  # runs that others start from have seeds of their own
EPISODES = 100  # at the checkpoints that are judged
JUDGED = (0.2, 0.4, 0.6, 0.8, 1.0)
WIDE = (512,)  # features, as many as the paper's: a rank has room to fall
GRIDWORLDS = ("grid16smoothobs", "grid16randomobs")

NOTE: Mapping[Scale, str] = {
    "smoke": "Two gridworlds and a tiny network stand in for the games: a few updates only show that all runs.",
    "laptop": "MinAtar's Asterix, Breakout and Seaquest stand in for Atari's games. Data are parts of two replays of "
    "1,000,000 steps that an online DQN makes here, which the seeds take in turn. Updates, target period, batch and "
    "Adam's ε are in docs/reproduce.md. Scores: 0 is a random agent, 100 the mean return over the replay.",
    "paper": "A policy is tried in 10 episodes, where the paper takes "
    f"{AtariSettings().evaluation_steps:,} steps (table E.1).",
}
NEEDS: Mapping[Scale, str] = {
    "smoke": "nothing",
    "laptop": "two MinAtar replays of three games, made first",
    "paper": "the DQN replay logs of Atari's games in DATA/dqn-replay",
}


@dataclass(frozen=True)
class AtariSize:
    """How large the family is at one scale."""

    steps: Mapping[str, int]  # by share of the data
    seeds: int
    evaluations: int  # over training
    episodes: int
    coefficients: Mapping[str, float]  # c0 by base method; what is not here is the paper's
    changed: Mapping[str, Any]  # hyperparameters that are not the paper's
    changed_of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the same, of one base method


SIZES: dict[Scale, AtariSize] = {
    "smoke": AtariSize(
        steps=dict.fromkeys(SHARES, 4),
        seeds=2,
        evaluations=2,
        episodes=1,
        coefficients={},
        changed={"network": "auto", "hidden": (8, 8), "batch_size": 128, "target_period": 2, "heads": 3},
    ),
    "laptop": AtariSize(
        steps=UPDATES,
        seeds=5,
        evaluations=20,
        episodes=20,
        coefficients=COEFFICIENTS,
        changed={"network": "auto", "hidden": (128,), "learning_rate": LEARNING_RATE, "adam_epsilon": 3.1e-4},
        # Each of REM's 200 heads gets a two-hundredth of the gradient, which the paper's ε would swallow.
        changed_of={"rem": {"adam_epsilon": 1e-8}, "cql": {"alpha": ALPHA}},
    ),
    "paper": AtariSize(
        steps={share: data.gradient_steps for share, data in ATARI_DATA.items()},
        seeds=AtariSettings().seeds,
        evaluations=AtariSettings().averaged_checkpoints,
        episodes=10,
        coefficients={},
        changed={},
    ),
}


@dataclass(frozen=True)
class Compared:
    """A design: these labels, on these parts of the replays, in these of the paper's games (all of them if None).

    `steps` are the updates of a scale where they are others than for these data elsewhere. `wide`: at laptop scale,
    with as many features as the paper's networks have.
    """

    labels: tuple[str, ...]
    shares: tuple[str, ...] = ("5%",)
    games: tuple[str, ...] | None = None
    steps: Mapping[Scale, int] = field(default_factory=dict)
    wide: bool = False
    laptop_shares: tuple[str, ...] | None = None  # where a day does not allow all of them

    def __call__(self, scale: Scale, folders: Folders) -> Design:
        shares = self.laptop_shares if scale == "laptop" and self.laptop_shares else self.shares
        worlds = worlds_at(scale, self.games)
        changed = {"hidden": WIDE} if self.wide and scale == "laptop" else {}
        arms = [
            Arm(
                label,
                called(world, scale),
                tasks(label, world, share, scale, folders, self.steps.get(scale), **changed),
                scoring(world, scale),
                share,
                keeping(world, share, scale, folders),
            )
            for share in shares
            for world in worlds
            for label in self.labels
        ]
        return Design(tuple(arms), preparations=preparations(worlds, scale, folders), note=NOTE[scale])


@dataclass(frozen=True)
class FromGoodSolution:
    """A design: training goes on from a critic that is good and has small dot products.

    The paper does not say where its own came from. Here it is the best checkpoint of a CQL + DR3 on 1 % of the same
    replay, trained with a seed that nothing else has. Every run goes on from it with batches of its own, and its return
    is measured anew at the start: that it was chosen as the best counts for nothing.
    """

    labels: tuple[str, ...]
    share: str = "1%"
    steps: Mapping[Scale, int] = field(default_factory=lambda: {"laptop": UPDATES["1%"] // 2})

    def __call__(self, scale: Scale, folders: Folders) -> Design:
        arms, sources = [], []
        worlds = worlds_at(scale, TWO)
        for world in worlds:
            starts = [
                dataclasses.replace(source, seeds=(SOLUTION_SEED + number,))
                for number, source in enumerate(tasks("CQL + DR3", world, self.share, scale, folders))
            ]
            sources += starts
            for label in self.labels:
                fresh = tasks(label, world, self.share, scale, folders, self.steps.get(scale))
                again = tuple(
                    dataclasses.replace(
                        one,
                        init_from=f"{folders.runs / start.name}@best:0",
                        needs=(*one.needs, start.name),
                        alias=one.alias or one.data,
                    )
                    for one, start in zip(fresh, starts, strict=True)
                )
                kept = keeping(world, self.share, scale, folders)
                arms.append(Arm(label, called(world, scale), again, scoring(world, scale), keeping=kept))
        return Design(tuple(arms), tuple(sources), preparations(worlds, scale, folders), NOTE[scale])


def worlds_at(scale: Scale, games: Sequence[str] | None) -> tuple[str, ...]:
    """What stands for the paper's games."""
    if scale == "smoke":
        return GRIDWORLDS
    if scale == "laptop":
        return tuple(game for game in MINATAR if game in (GAMES if games is None else games))
    return tuple(game for game in table("atari-normalisers").rows if games is None or game in games)


def called(world: str, scale: Scale) -> str:
    """MinAtar's games are others than Atari's of the same name, with other returns: no number of one is the other's."""
    return f"MinAtar {world}" if scale == "laptop" else world


def scoring(world: str, scale: Scale) -> Scoring:
    match scale:
        case "smoke":
            return Exact(world)
        case "laptop":
            return Replays()
    return Published(world)


def keeping(world: str, share: str, scale: Scale, folders: Folders) -> tuple[Keeping, ...]:
    """What is tried once more for the evidence of each of `tasks`."""
    if scale != "laptop":
        return (Keeping(layers=scale == "smoke" or share == "5%"),) * len(data_sets(world, share, scale, folders))
    return tuple(
        Keeping(JUDGED, EPISODES, layers=share == "5%", replay=word.partition(":")[0])
        for word in data_sets(world, share, scale, folders)
    )


def data_sets(world: str, share: str, scale: Scale, folders: Folders) -> dict[str, list[int]]:
    """The words for the data, each with the seeds that learn from it."""
    by_data: dict[str, list[int]] = {}
    for seed in range(SIZES[scale].seeds):
        by_data.setdefault(data(world, share, seed, scale, folders), []).append(seed)
    return by_data


def tasks(
    label: str,
    world: str,
    share: str,
    scale: Scale,
    folders: Folders,
    steps: int | None = None,
    **changed: Any,
) -> tuple[Task, ...]:
    """One population for each data set: all seeds that learn from it. `changed` are hyperparameters."""
    method, regularizer = agent(label, share, scale)
    method = dataclasses.replace(method, **changed)
    size = SIZES[scale]
    steps = steps or size.steps[share]
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
            alias=folders.alias(word),
        )
        for word, seeds in data_sets(world, share, scale, folders).items()
    )


def agent(label: str, share: str, scale: Scale) -> tuple[DiscreteMethod, Regularizer | None]:
    """The paper's agent, with what `SIZES` changes at this scale."""
    base, _, term = label.partition(" + ")
    known = base.lower() if base in ("DQN", "CQL", "REM") else "dqn"
    method, published = atari(known, SHARES[share], dr3=True)  # ty: ignore[invalid-argument-type]
    assert published is not None
    size = SIZES[scale]
    changed = {**size.changed, **size.changed_of.get(known, {})}
    method = _of_kind(EVALUATING.get(base, type(method)), dataclasses.asdict(method) | changed)
    c0 = size.coefficients.get(known, published.coefficient)
    if term == "unit features":
        return dataclasses.replace(method, normalise_features=True), None
    terms: dict[str, Regularizer | None] = {
        "": None,
        "DR3": DR3(c0),
        "Δ'": DR3(c0, stop_gradient="next"),
        "norm": FeatureNorm(c0),
        "label noise": LabelNoiseDR3(c0, solver="steps" if scale == "paper" else "fixed_point"),
    }
    return method, terms[term]


# What estimates the behaviour policy's value (section 3.1). The replay is of many policies: theirs is cloned.
EVALUATING: dict[str, Any] = {
    "TD-learning": partial(TD, behavior="cloned"),
    "offline SARSA": SARSA,
    "supervised regression": Supervised,
}


def _of_kind(kind: Any, settings: dict[str, Any]) -> Any:
    """A method with those of the settings that it has."""
    known = {one.name for one in dataclasses.fields(getattr(kind, "func", kind))}
    return kind(**{key: value for key, value in settings.items() if key in known})


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
    """The replays that are made here, as `collect_replay` says."""
    if scale != "laptop":
        return ()
    return tuple(
        Preparation(file, collect_replay, {"env": MINATAR[world], "seed": number, "out": file})
        for world in worlds
        for number in range(REPLAYS)
        if (file := replay(world, number, folders))
    )


def collect_replay(env: str, seed: int, out: str) -> None:
    """`dr3 data collect dqn --env ENV --seed SEED --steps 1e6 --epsilon 0.01 --epsilon-steps 5000 --out OUT`."""
    collect_dqn(env, steps=MINATAR_STEPS, seed=seed, out=out, schedule=EXPLORING)
