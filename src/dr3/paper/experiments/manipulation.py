"""COG, robotic manipulation from images: the drawers of `dr3.envs` at `laptop` scale, COG's files at `paper`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dr3.paper import presets
from dr3.paper.cog import cog
from dr3.paper.experiments.bundle import DOT
from dr3.paper.experiments.checks import Learned, Provided, gain
from dr3.paper.experiments.continuous import Setup, WithAndWithout, World
from dr3.paper.experiments.declaration import Experiment, Folders, Scale
from dr3.paper.experiments.evidence import SCORE
from dr3.paper.experiments.pictures import Curves
from dr3.paper.experiments.scoring import Successes
from dr3.sweeps import Preparation


@dataclass(frozen=True)
class Drawers(World):
    """A share of the trajectories of two files: task data and prior data, whose rewards are 0."""

    prior: str = ""
    share: float = 1.0

    def word(self, folders: Folders) -> str:
        part = f":trajectories={self.share:.0%}:seed=0"
        return f"{folders.data / self.file}{part}+{folders.data / self.prior}{part}:zero_rewards=true"

    def preparation(self, folders: Folders) -> Preparation | None:
        if self.maker is None:
            return None
        function, arguments = self.maker
        folder = (folders.data / self.file).parent
        call = {**arguments, "out": str(folder), "progress": False}
        files = tuple(str(folders.data / file) for file in (self.file, self.prior))
        return Preparation(str(folder / "success.json"), function, call, also=files)  # what collecting writes last


def collect_scripted(**call: Any) -> None:
    """`dr3 data collect drawers`, whose module needs MuJoCo."""
    from dr3.collect.drawers import collect_drawers

    collect_drawers(**call)


def _scripted(task: str, share: float, episodes: int, steps: int) -> Drawers:
    """Episodes of scripts in a drawer world."""
    env, folder = f"drawers/{task}", f"drawers/{task}-{episodes}x{steps}"
    call = {"task": env, "episodes": episodes, "steps": steps, "workers": 1}
    maker = (collect_scripted, call)
    name = f"{task}, {share:.0%}"
    return Drawers(name, f"{folder}/task.npz", env, Successes(), maker=maker, prior=f"{folder}/prior.npz", share=share)


def _original(number: int, env: str, share: float) -> Drawers:
    """COG's own files, turned into plain ones."""
    return Drawers(
        f"task {number}, {share:.0%}",
        "cog/drawer_task.npz",
        env,
        Successes(),
        prior=f"cog/blocked_drawer_{number}_prior.npz",
        share=share,
    )


SHARES = presets.COGSettings().data_shares
PAPER_COG, PAPER_DR3 = cog(dr3=True)
SMALL: dict[str, Any] = {"hidden": (128, 128), "policy_hidden": (128, 128), "tiny_start": False}
QUICK: dict[str, Any] = {"encoder": "strided", "channels": (16, 32), "crop": 2}
# A value travels back one step in about 1 / rate updates, and the closed drawer is forty steps from the ball. No return
# is below 0, and targets are held to that: each backup takes the value of an action that CQL's term pushes down, and
# what it takes away would add up over a hundred steps.
LAPTOP_COG = dataclasses.replace(
    PAPER_COG,
    **SMALL,
    **QUICK,
    batch_size=64,
    warm_start=3_000,
    learning_rate=1e-3,
    policy_learning_rate=1e-3,
    target_rate=0.01,
    target_clip=True,
)
SMOKE_COG = dataclasses.replace(
    LAPTOP_COG, hidden=(8,), policy_hidden=(8,), channels=(2, 2), batch_size=8, warm_start=2
)
EPISODES = 3_200
STEPS = 40  # at most: an episode ends with its script, after some 25
ORIGINALS = (
    "Widow250DoubleDrawerCloseOpenGraspNeutral-v0",
    "Widow250DoubleDrawerPickPlaceOpenGraspNeutral-v0",
)

DRAWERS = WithAndWithout(
    "COG",
    PAPER_DR3,
    {
        "smoke": Setup(
            (_scripted("closed", 1.0, 2, 3),),
            SMOKE_COG,
            steps=4,
            seeds=2,
            evaluations=1,
            episodes=1,
            note="A tiny network on three steps of two episodes, for a few updates: it only shows that all runs.",
        ),
        "laptop": Setup(
            (
                *(_scripted("closed", share, EPISODES, STEPS) for share in SHARES),
                _scripted("blocked-by-drawer", max(SHARES), EPISODES, STEPS),
            ),
            LAPTOP_COG,
            steps=20_000,
            seeds=5,
            evaluations=5,
            episodes=20,
            note="The drawers made here, in MuJoCo, stand in for the original's: the easy task (both are closed), and "
            f"of the harder ones that with the top drawer in the way, with {EPISODES:,} episodes of each script as the "
            "whole data. Networks have a strided encoder of 16 and 32 channels and 2 x 128 units; batches have 64 "
            "rows, warm starts 3,000 updates; targets move by 0.01 and are held between 0 and 1 / (1 - γ).",
        ),
        "paper": Setup(
            tuple(_original(number, env, share) for number, env in enumerate(ORIGINALS, start=1) for share in SHARES),
            PAPER_COG,
            steps=presets.COGSettings().steps,
            evaluations=60,
        ),
    },
)

NEEDS: Mapping[Scale, str] = {
    "smoke": "nothing",
    "laptop": "scripted episodes in drawers/closed, made first",
    "paper": "COG's files as npz in DATA/cog (dr3 data convert), and its worlds as Gymnasium ids that show a picture",
}

COG = Experiment(
    id="figure-3",
    label="fig:cog_figure",
    title="COG on two drawer tasks with 5 % and 25 % of the data",
    claim="COG + DR3 learns faster than COG and attains a higher average and final performance.",
    printed="Curves only.",
    design=DRAWERS,
    checks=tuple(
        Provided((Learned(("COG", "COG + DR3")),), gain("COG + DR3", "COG", measure))
        for measure in ("average", "final")
    ),
    picture=Curves((SCORE, DOT), log=(DOT,)),
    needs=NEEDS,
)
