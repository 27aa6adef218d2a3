"""Questions that the paper leaves: Q-learning on 1 %; decorrelation or scale; where it falls; learning online."""

from __future__ import annotations

import dataclasses
from typing import Any

from dr3.methods import DQN
from dr3.paper.experiments import atari, gridworld
from dr3.paper.experiments.atari import NEEDS, Compared
from dr3.paper.experiments.bundle import DOT, MEAN_Q, OUTSIDE, Online
from dr3.paper.experiments.checks import Compare, Learned, Provided, declines, ends, gain, grows
from dr3.paper.experiments.declaration import Arm, Design, Experiment, Folders, Scale
from dr3.paper.experiments.evidence import SCORE
from dr3.paper.experiments.pictures import Curves, Map
from dr3.paper.experiments.scoring import Percent
from dr3.regularizers import DR3
from dr3.runs.outcomes import RETURN

BASES = ("DQN", "REM")  # what falls on 1 % of a replay
TERMS = ("", " + DR3", " + norm", " + unit features")

FALL = Experiment(
    id="fall",
    label="",
    title="Q-learning that rises and falls, with DR3 and without",
    claim="On 1 % of a replay the dot products of DQN grow and its return falls; with DR3 they are smaller, and its "
    "return is higher on average over training and at the end.",
    printed="Nothing: the paper's tables are of CQL and REM; figures 1, 2 and A.1 have DQN without DR3.",
    design=Compared(("DQN", "DQN + DR3"), ("1%",), (*atari.GAMES, atari.TUNING_GAME)),
    checks=(
        Provided((Learned(("DQN",)),), declines("DQN")),
        grows(DOT, "DQN"),
        ends(DOT, "DQN + DR3", "smaller", than="DQN"),
        *(
            Provided((Learned(("DQN",)), declines("DQN")), gain("DQN + DR3", "DQN", measure))
            for measure in ("average", "final")
        ),
    ),
    picture=Curves((SCORE, DOT, MEAN_Q, OUTSIDE), log=(DOT,)),
    needs=NEEDS,
)

CONTROLS = Experiment(
    id="controls",
    label="",
    title="Decorrelation or scale: DR3 beside two controls",
    claim="DR3 turns features apart; a penalty on their norms and features of unit length do as well, or do not.",
    printed="Nothing: the paper does not ask.",
    design=Compared(tuple(f"{base}{term}" for base in BASES for term in TERMS), ("1%",)),
    checks=tuple(
        gain(f"{base} + DR3", f"{base} + {control}") for base in BASES for control in ("norm", "unit features")
    ),
    picture=Curves((SCORE, DOT), log=(DOT,)),
    needs=NEEDS,
)


@dataclasses.dataclass(frozen=True)
class Axes:
    """What the map is over: target periods, sizes of the data, c0. And how long and how often."""

    periods: tuple[int, ...]
    rows: tuple[str, ...]
    coefficients: tuple[float, ...]
    seeds: int
    updates: int


WORLD, GAME = gridworld.DENSE_WORLD, "Breakout"
GRID_AXES: dict[Scale, Axes] = {
    "smoke": Axes((2,), ("64",), (0.0, 0.03), 1, 4),
    "laptop": Axes((10, 50, 200, 1_000), ("64", "256", "1024"), (0.0, 0.003, 0.03, 0.3), 5, 8_000),
}
GAME_AXES: dict[Scale, Axes] = {
    "smoke": Axes((2,), ("1%",), (0.0, 0.03), 1, 4),
    "laptop": Axes((200, 2_000, 8_000), ("1%", "5%"), (0.0, 0.003, 0.03), 3, atari.UPDATES["5%"]),
}


def map_of_periods(scale: Scale, folders: Folders) -> Design:
    """Q-learning by target period, size of the data and c0: on a gridworld with exact values, and on one game."""
    size: Scale = "smoke" if scale == "smoke" else "laptop"
    axes = GRID_AXES[size]
    small = gridworld.GridworldSize((8, 8) if scale == "smoke" else (128, 128), axes.updates, axes.seeds)
    arms = [
        dataclasses.replace(
            gridworld.arm(
                f"c0 = {c0:g}",
                WORLD,
                DQN(**small.shared, target_period=period),
                small,
                DR3(c0) if c0 else None,
                WORLD,
                rows=int(rows),
            ),
            world=f"N = {period}, {rows} rows",
        )
        for period in axes.periods
        for rows in axes.rows
        for c0 in axes.coefficients
    ]
    if scale == "smoke":
        return Design(tuple(arms), note=atari.NOTE[scale])
    axes = GAME_AXES[size]
    for period in axes.periods:
        for share in axes.rows:
            base = atari.tasks("DQN", GAME, share, "laptop", folders, axes.updates, target_period=period)[0]
            seeds = tuple(range(axes.seeds))
            kept = dataclasses.replace(atari.keeping(GAME, share, "laptop", folders)[0], layers=False)
            for c0 in axes.coefficients:
                task = dataclasses.replace(base, regularizers=(DR3(c0) if c0 else None,), seeds=seeds)
                place = f"N = {period:,}, {share}"
                arms.append(
                    Arm(f"c0 = {c0:g}", place, (task,), atari.scoring(GAME, "laptop"), f"MinAtar {GAME}", (kept,))
                )
    return Design(tuple(arms), preparations=atari.preparations((GAME,), "laptop", folders), note=atari.NOTE["laptop"])


MAP = Experiment(
    id="map",
    label="",
    title="Where Q-learning falls and where DR3 holds it",
    claim="Which target period, size of the data and c0 decide.",
    printed="Nothing: the paper does not ask.",
    design=map_of_periods,
    checks=(),
    picture=Map(),
    needs=NEEDS,
)


# --- Online: the paper's first open question ---

ONLINE_STEPS = 500_000
ONLINE_SEEDS = 5


def _agents(env: str, regularizer: str) -> tuple[Any, ...]:
    return tuple(Online(env, regularizer, seed, ONLINE_STEPS) for seed in range(ONLINE_SEEDS))


def online(scale: Scale, folders: Folders) -> Design:
    """An online DQN with DR3 and without, in two games."""
    if scale != "laptop":
        return Design(blocked=f"agents learn online at laptop scale alone, not at {scale} scale")
    arms = [
        Arm(
            label,
            f"MinAtar {game}",
            _agents(atari.MINATAR[game], word),
            Percent(),
        )
        for game in atari.TWO
        for label, word in (("DQN", "none"), ("DQN + DR3", f"dr3:{atari.COEFFICIENTS['dqn']}"))
    ]
    return Design(
        tuple(arms), note="A DQN that learns online for 500,000 steps; returns are those that it earns meanwhile."
    )


ONLINE = Experiment(
    id="online",
    label="",
    title="An online DQN with DR3 and without",
    claim="DR3 helps an agent that learns online as well.",
    printed="Nothing: “extending our theory and DR3 to online RL is an interesting avenue for future work”.",
    design=online,
    checks=(Compare(RETURN, "DQN + DR3", "larger", "DQN", "average"), Compare(RETURN, "DQN + DR3", "larger", "DQN")),
    picture=Curves((RETURN,)),
    needs={"smoke": "nothing", "laptop": "nothing", "paper": "nothing"},
)

QUESTIONS = (FALL, CONTROLS, MAP, ONLINE)
