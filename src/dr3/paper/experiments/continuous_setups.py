"""Which worlds, data and methods the D4RL family has at each scale."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dr3.collect.maze import collect_maze
from dr3.collect.online_sac import collect_sac
from dr3.envs import find_task
from dr3.methods import BRAC, SAC, ContinuousCQL
from dr3.paper import presets
from dr3.paper.d4rl import d4rl_brac, d4rl_cql
from dr3.paper.experiments.continuous import Setup, WithAndWithout, World
from dr3.paper.experiments.declaration import Keeping, Scale
from dr3.paper.experiments.scoring import Percent, Published
from dr3.paper.tables import table

MAZE_STEPS = 100_000  # of each PointMaze's data
ANT_STEPS = 200_000  # of each AntMaze's: an ant walks a metre in ten steps
SAC_STEPS = 200_000  # of each replay
MAZE_UPDATES = 90_000  # and 60,000, two thirds of them: as 2M and 3M in the paper
KITCHEN_EPISODES = {"complete": 40, "partial": 100, "mixed": 100}  # D4RL: 19, 601 and 601
KITCHEN_UPDATES = 20_000
MUJOCO_UPDATES = 100_000
SEEDS = 5
EPISODES = 100  # at the checkpoints that are judged
SMALL: dict[str, Any] = {"hidden": (128, 128), "policy_hidden": (128, 128), "batch_size": 128}
COLLECTOR = SAC(**SMALL, learning_rate=1e-3)
TINY: dict[str, Any] = {"hidden": (8,), "policy_hidden": (8,), "batch_size": 8}


# --- Worlds and their data ---


def _maze(layout: str, kind: str, steps: int = MAZE_STEPS, group: str = "") -> World:
    name, env = f"pointmaze-{layout}-{kind}", f"pointmaze/{layout}"
    call = {"env": env, "kind": kind, "steps": steps}
    return World(name, f"{name}-{steps}.npz", env, Percent(), maker=(collect_maze, call), group=group)


def _ant_maze(layout: str, kind: str) -> World:
    name, env = f"antmaze-{layout}-{kind}", f"antmaze/{layout}-{kind}"
    call = {"env": env, "kind": kind, "steps": ANT_STEPS}
    return World(name, f"{name}-{ANT_STEPS}.npz", env, Percent(), maker=(collect_maze, call), group="AntMaze")


def _sac(env: str) -> World:
    """The whole replay of an online SAC ("full-replay"), 20 % of its rows drawn at random."""
    robot = env.partition("-")[0].lower()
    return World(
        f"{robot}-full-replay",
        f"{robot}.npz",
        "auto",  # the replay knows its world
        Published(f"{robot}-full-replay-v2"),
        settings=f":fraction={presets.D4RL().mujoco_data_share}:seed=0",
        maker=(collect_replay, {"env": env}),
    )


def collect_replay(env: str, out: str) -> None:
    """`dr3 data collect sac` with the small networks."""
    collect_sac(env, steps=SAC_STEPS, out=out, method=COLLECTOR)


def _kitchen(kind: str, episodes: int) -> World:
    name = f"kitchen-{kind}"
    call = {"kind": kind, "episodes": episodes}
    return World(name, f"{name}-{episodes}.npz", name.replace("-", "/"), Published(name), maker=(demonstrations, call))


def demonstrations(kind: Any, episodes: int, out: str) -> None:
    """`dr3 data collect kitchen`, which needs MuJoCo."""
    from dr3.collect.kitchen import collect_kitchen

    collect_kitchen(kind, episodes=episodes, out=out)


def _d4rl(name: str, settings: str = "") -> World:
    task = find_task(name)
    assert task is not None
    return World(name, str(Path("d4rl") / f"{name}.hdf5"), task.world, Published(name), settings)


ROBOTS = tuple(_sac(env) for env in ("Hopper-v5", "Walker2d-v5", "Ant-v5"))


# --- Methods ---

_D4RL = presets.D4RL()
(PAPER_CQL_MAZE, MAZE_DR3), (PAPER_CQL_KITCHEN, KITCHEN_DR3), (PAPER_CQL, MUJOCO_DR3) = (
    d4rl_cql(domain, dr3=True) for domain in ("antmaze", "kitchen", "mujoco")
)
PAPER_BRAC, BRAC_DR3 = d4rl_brac(dr3=True)
# The policy learns as fast as the critics: there are 100,000 updates, not millions.
LAPTOP_CQL = dataclasses.replace(PAPER_CQL, **SMALL, policy_learning_rate=3e-4, sampled_actions=4, warm_start=2_000)
LAPTOP_CQL_MAZE = dataclasses.replace(
    PAPER_CQL_MAZE, **SMALL, policy_learning_rate=3e-4, sampled_actions=4, warm_start=2_000
)
# As in a try of the base method that did one thing of four, a single seed (docs/results/kitchen.md).
LAPTOP_CQL_KITCHEN = dataclasses.replace(
    PAPER_CQL_KITCHEN, **SMALL, policy_learning_rate=1e-3, sampled_actions=4, warm_start=2_000
)
# The paper's form collapsed on these replays, with any weight (docs/results/mujoco.md); BRAC's release's did not.
LAPTOP_BRACS = {
    "the paper's form": dataclasses.replace(PAPER_BRAC, **SMALL, behavior_steps=5_000),
    "the release's form": dataclasses.replace(
        PAPER_BRAC, **SMALL, form="kl", value_penalty=False, behavior_weight=10.0, behavior_steps=5_000
    ),
}
SMOKE_CQL = dataclasses.replace(PAPER_CQL, **TINY, sampled_actions=2, warm_start=2)
SMOKE_BRAC = dataclasses.replace(PAPER_BRAC, **TINY, behavior_steps=2)


# --- The four experiments' setups ---

SMOKE_NOTE = "A tiny network on a few steps of PointMaze, for a few updates: it only shows that all runs."
NETWORKS = "Networks have 2 x 128 units and batches 128 rows, and CQL samples 4 actions of each kind instead of 10."
SMALL_MAZE = _maze("umaze", "play", steps=300)


def _smoke(method: ContinuousCQL | BRAC) -> Setup:
    return Setup((SMALL_MAZE,), method, steps=4, seeds=2, evaluations=1, episodes=1, note=SMOKE_NOTE)


ANTMAZE = WithAndWithout(
    "CQL",
    MAZE_DR3,
    {
        "smoke": _smoke(SMOKE_CQL),
        "laptop": Setup(
            (
                *(
                    _maze(layout, kind, group="PointMaze")
                    for layout in ("medium", "large")
                    for kind in ("play", "diverse")
                ),
                _ant_maze("umaze", "diverse"),
                _ant_maze("medium", "play"),
            ),
            LAPTOP_CQL_MAZE,
            MAZE_UPDATES,
            SEEDS,
            evaluations=18,
            episodes=20,
            keeping=Keeping((2 / 3, 1.0), EPISODES),
            note="AntMaze's U and its medium maze, with data of a walker that learned here, and PointMaze, a point in "
            f"such mazes; each has its own verdict. {NETWORKS}",
        ),
        "paper": Setup(
            tuple(_d4rl(name) for name in table("antmaze").rows),
            PAPER_CQL_MAZE,
            max(_D4RL.antmaze_steps),
            _D4RL.seeds,
            evaluations=60,
            episodes=100,
        ),
    },
)

KITCHEN = WithAndWithout(
    "CQL",
    KITCHEN_DR3,
    {
        "smoke": _smoke(SMOKE_CQL),
        "laptop": Setup(
            tuple(_kitchen(kind, episodes) for kind, episodes in KITCHEN_EPISODES.items()),
            LAPTOP_CQL_KITCHEN,
            KITCHEN_UPDATES,
            SEEDS,
            evaluations=10,
            episodes=5,
            keeping=Keeping((1.0,), 20),
            note=f"Scripted demonstrations stand in for people's ({KITCHEN_EPISODES} of them). {NETWORKS}",
        ),
        "paper": Setup(
            tuple(_d4rl(name) for name in table("kitchen").rows), PAPER_CQL_KITCHEN, _D4RL.kitchen_steps, _D4RL.seeds
        ),
    },
)

MUJOCO = WithAndWithout(
    "CQL",
    MUJOCO_DR3,
    {
        "smoke": _smoke(SMOKE_CQL),
        "laptop": Setup(
            ROBOTS,
            LAPTOP_CQL,
            MUJOCO_UPDATES,
            SEEDS,
            keeping=Keeping((1.0,), EPISODES),
            note=f"Replays of {SAC_STEPS:,} steps of a SAC that learns here stand in for D4RL's. {NETWORKS}",
        ),
        "paper": Setup(
            tuple(
                _d4rl(f"{robot}-full-replay-v2", f":fraction={_D4RL.mujoco_data_share}:seed=0")
                for robot in ("hopper", "walker2d", "ant")
            ),
            PAPER_CQL,
            _D4RL.mujoco_steps,
            _D4RL.seeds,
        ),
    },
)

BEHAVIOUR_REGULARIZED = WithAndWithout(
    "BRAC",
    BRAC_DR3,
    {
        "smoke": _smoke(SMOKE_BRAC),
        "laptop": Setup(
            ROBOTS,
            LAPTOP_BRACS["the paper's form"],
            MUJOCO_UPDATES,
            SEEDS,
            keeping=Keeping((1.0,), EPISODES),
            variants=LAPTOP_BRACS,
            note="20 % of the replays of a SAC that learns here, of three robots, stand in for D4RL's fifteen files. "
            "Networks have 2 x 128 units and batches 128 rows. BRAC in the form of the paper's appendix, and in its "
            "release's (a KL penalty of weight 10 on the policy).",
        ),
        "paper": Setup(
            tuple(_d4rl(name) for name in table("brac").rows), PAPER_BRAC, presets.BRACSettings().steps, seeds=3
        ),
    },
)

MAZE_NEEDS: Mapping[Scale, str] = {
    "smoke": "nothing",
    "laptop": "AntMaze and PointMaze data, made first",
    "paper": "D4RL's antmaze files (v2) in DATA/d4rl",
}
KITCHEN_NEEDS: Mapping[Scale, str] = {
    "smoke": "nothing",
    "laptop": "scripted demonstrations, made first",
    "paper": "D4RL's kitchen files (v0) in DATA/d4rl",
}
MUJOCO_NEEDS: Mapping[Scale, str] = {
    "smoke": "nothing",
    "laptop": "replays of SAC on Hopper, Walker2d and Ant, made first",
    "paper": "D4RL's MuJoCo files in DATA/d4rl",
}
