"""What `dr3 demo` shows: four experiments of minutes, judged by the same checks as the paper's figures and tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from dr3.cores import available_cores
from dr3.methods import CQL, DQN
from dr3.paper.experiments import gridworld
from dr3.paper.experiments.bundle import DOT
from dr3.paper.experiments.checks import NotWorse, ends
from dr3.paper.experiments.declaration import Arm, Design, Experiment, Keeping
from dr3.paper.experiments.evidence import SCORE
from dr3.paper.experiments.gridworld import SLOW_TARGETS, UNLOGGED_ACTIONS, GridworldSize
from dr3.paper.experiments.pictures import Curves
from dr3.paper.experiments.result import Result
from dr3.paper.experiments.running import Plan, judged
from dr3.paper.experiments.scoring import Percent
from dr3.regularizers import DR3
from dr3.runs.interruption import watched
from dr3.runs.outcomes import RETURN
from dr3.sweeps import Job, Task
from dr3.sweeps.task import write_record

SAMPLE = "sample:minatar-breakout-1%"
GAME = CQL(
    alpha=1.0, hidden=(128,), learning_rate=2.5e-4, adam_epsilon=3.1e-4, batch_size=32, target_period=200, error="huber"
)
GAME_COEFFICIENT = 0.01  # chosen on other seeds: docs/results/minatar.md


@dataclasses.dataclass(frozen=True)
class Demonstration:
    """How large it is: gridworlds, those of the comparison with DR3 alone, and updates on the game."""

    gridworlds: GridworldSize
    dr3: GridworldSize
    breakout_updates: int


QUICK = Demonstration(GridworldSize((128, 128), 8_000, seeds=3), GridworldSize((128, 128), 5_000, seeds=10), 5_000)
FULL = Demonstration(
    GridworldSize((1024, 1024), 20_000, seeds=3), GridworldSize((1024, 1024), 20_000, seeds=10), 15_000
)
SMOKE = Demonstration(GridworldSize((8, 8), 40, seeds=2), GridworldSize((8, 8), 40, seeds=2), 20)


def experiments(sizes: Demonstration) -> tuple[Experiment, ...]:
    """The four of them."""
    return (
        _experiment(
            "out-of-sample-actions",
            "TD-learning, whose next actions may never have been logged, ends with larger feature dot products than "
            "offline SARSA and supervised regression.",
            gridworld.out_of_sample(sizes.gridworlds),
            (UNLOGGED_ACTIONS, ends(DOT, "TD-learning", "larger", than="supervised regression")),
            Curves((DOT,)),
        ),
        _experiment(
            "target-update-frequency",
            "A slower target network does not prevent co-adaptation: Q-learning's dot products are larger again when "
            "the target is updated every N = 50 to 500 steps instead of every 10.",
            gridworld.target_periods(sizes.gridworlds, {"": DQN}),
            (SLOW_TARGETS,),
            Curves((DOT,), log=(DOT,)),
        ),
        _experiment(
            "dr3",
            f"DR3 (c0 = {sizes.dr3.coefficient:g}) keeps the dot products of Q-learning small, and its policy is on "
            "average over training no worse, on each of four gridworlds.",
            gridworld.with_and_without_dr3(sizes.dr3),
            (ends(DOT, "DQN + DR3", "smaller", than="DQN", by="each"), NotWorse("DQN + DR3", "DQN", by="each")),
            Curves((SCORE, DOT), log=(DOT,)),
        ),
        _experiment(
            "minatar",
            "CQL on the data of a game: DR3 keeps the dot products small.",
            breakout(sizes.breakout_updates, sizes.gridworlds.seeds),
            (ends(DOT, "CQL + DR3", "smaller", than="CQL"),),
            Curves((DOT, RETURN) if can_play() else (DOT,), log=(DOT,)),
        ),
    )


def breakout(updates: int, seeds: int) -> Design:
    """CQL on the 1 % of a MinAtar replay that comes with dr3.

    Without pgx (its games are under the GPL, so nothing installs it unasked) no policy is tried.
    """
    arms = [
        Arm(
            label,
            "MinAtar Breakout, 1 % of a replay",
            (
                Task(
                    SAMPLE,
                    GAME,
                    (regularizer,),
                    tuple(range(seeds)),
                    steps=updates,
                    env="auto" if can_play() else None,
                    metrics_every=max(1, updates // 20),
                    evaluate_every=max(1, updates // 10),
                ),
            ),
            Percent(),
            keeping=(Keeping(),),
        )
        for label, regularizer in (("CQL", None), ("CQL + DR3", DR3(GAME_COEFFICIENT)))
    ]
    note = "" if can_play() else "No policy was tried: that needs the game (pip install 'dr3[minatar]', under the GPL)."
    return Design(tuple(arms), note=note)


def can_play() -> bool:
    return find_spec("pgx") is not None


def demonstrate(plan: Plan, finished: Callable[[int, int], None]) -> list[Result]:
    """Train what has no evidence yet, one run to a core, in this process: equal programs are compiled once; then judge.

    Args:
        plan: Of `experiments`.
        finished: Told after each run how many of how many are there.
    """
    jobs = plan.missing()
    tasks = [job for job in jobs if isinstance(job, Task)]
    bundles = {job.needs[0]: job for job in jobs if not isinstance(job, Task)}
    runs = plan.folders.runs

    def train(task: Task) -> None:
        if asked.signal:
            asked.leave()
        _carry_out(task, runs / task.name)
        _carry_out(bundles[task.name], runs / bundles[task.name].name)

    plan.evidence.mkdir(parents=True, exist_ok=True)
    with watched() as asked, ThreadPoolExecutor(max_workers=available_cores()) as pool:
        for done, _ in enumerate(pool.map(train, tasks), start=1):
            finished(done, len(tasks))
    if asked.signal:
        asked.leave()
    return judged(plan)


def _carry_out(job: Job, folder: Path) -> None:
    write_record(folder, job)
    if isinstance(job, Task):
        job.run(folder, progress=False)
    else:
        job.run(folder)


def _experiment(id: str, claim: str, design: Design, checks: tuple, picture: Curves) -> Experiment:
    return Experiment(
        id=id,
        label="",
        title=claim,
        claim=claim,
        printed="",
        checks=checks,
        design=lambda scale, folders: design,
        picture=picture,
    )
