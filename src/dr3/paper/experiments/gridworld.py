"""The gridworld family (appendix A.6): two of the paper's figures, and what `dr3 demo` shows.

The paper gives 256 transitions, two hidden layers of 1024 units, the target periods and three seeds. Learning rate
5e-3, discount 0.95 and batch 128 are those of the public gridworld code's experiments; the number of updates, and the
target period where the paper does not vary it, are ours. Each seed is a new draw of the data as well as of the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dr3.methods import CQL, DQN, SARSA, TD, Method, Supervised
from dr3.paper.experiments.bundle import DOT
from dr3.paper.experiments.checks import WorstLarger, ends
from dr3.paper.experiments.declaration import Arm, Design, Experiment, Folders, Scale
from dr3.paper.experiments.pictures import Curves
from dr3.paper.experiments.scoring import Exact
from dr3.regularizers import DR3, Regularizer
from dr3.sweeps import Task

SPARSE_WORLDS = ("grid16smoothsparse", "grid16randomsparse")
DENSE_WORLD = "grid16smoothobs"
WORLDS = (DENSE_WORLD, "grid16randomobs", *SPARSE_WORLDS)
TARGET_PERIODS = (5, 10, 50, 100, 200, 500)
SEEDS = 20  # data sets, each with weights of its own


@dataclass(frozen=True)
class GridworldSize:
    """How large an experiment is, and what the paper leaves open."""

    hidden: tuple[int, ...]
    updates: int
    seeds: int = 3
    learning_rate: float = 5e-3
    discount: float = 0.95
    batch_size: int = 128
    evaluation_period: int = 20  # of the target network, where a method estimates the behaviour policy's value
    control_period: int = 50  # of the target network, where Q-learning is compared with and without DR3
    coefficient: float = 0.03  # c0

    @property
    def shared(self) -> dict[str, Any]:
        return {
            "hidden": self.hidden,
            "learning_rate": self.learning_rate,
            "discount": self.discount,
            "batch_size": self.batch_size,
        }


SIZES: dict[Scale, GridworldSize] = {
    "smoke": GridworldSize(hidden=(8, 8), updates=4, seeds=1),
    "laptop": GridworldSize(hidden=(128, 128), updates=8_000, seeds=SEEDS),
    "paper": GridworldSize(hidden=(1024, 1024), updates=20_000),
}
# The paper's network; with the slowest target there are six copies of it.
PERIOD_SIZES = SIZES | {"laptop": GridworldSize(hidden=(1024, 1024), updates=3_000, seeds=SEEDS)}
NEEDS: Mapping[Scale, str] = dict.fromkeys(SIZES, "nothing: data are sampled")


def arm(
    label: str,
    world: str,
    method: Method,
    size: GridworldSize,
    regularizer: Regularizer | None = None,
    group: str = "",
    rows: int | None = None,
) -> Arm:
    """A method on a world, over all seeds, each with data of its own: 256 rows, or so many."""
    more = "" if rows is None else f":size={rows}"
    tasks = tuple(
        Task(
            f"{world}{more}:seed={seed}",
            method,
            (regularizer,),
            (seed,),
            steps=size.updates,
            metrics_every=max(1, size.updates // 40),
            evaluate_every=max(1, size.updates // 20),
        )
        for seed in range(size.seeds)
    )
    return Arm(label, world, tasks, Exact(world, size.discount), group)


def out_of_sample(size: GridworldSize) -> Design:
    """Figure "out of sample actions" (A.6.2), and the regression of section 3.1."""
    period = {"target_period": size.evaluation_period}
    methods = {
        "TD-learning": TD(**size.shared, **period),
        "offline SARSA": SARSA(**size.shared, **period),
        "supervised regression": Supervised(**size.shared),
    }
    return Design(
        tuple(arm(label, world, method, size) for world in SPARSE_WORLDS for label, method in methods.items()),
        note=_note(size),
    )


def target_periods(size: GridworldSize, bases: Mapping[str, type[DQN | CQL]]) -> Design:
    """Figure "target update frequency" (A.6.1)."""
    return Design(
        tuple(
            arm(f"N = {n}", DENSE_WORLD, base(**size.shared, target_period=n), size, group=group)
            for group, base in bases.items()
            for n in TARGET_PERIODS
        ),
        note=_note(size),
    )


def with_and_without_dr3(size: GridworldSize) -> Design:
    """Q-learning on all four gridworlds, with DR3 and without (section 4)."""
    method = DQN(**size.shared, target_period=size.control_period)
    return Design(
        tuple(
            arm(label, world, method, size, regularizer)
            for world in WORLDS
            for label, regularizer in (("DQN", None), ("DQN + DR3", DR3(size.coefficient)))
        ),
        note=_note(size),
    )


def _note(size: GridworldSize) -> str:
    if size.hidden == (1024, 1024):
        return ""
    return f"Networks have {' x '.join(map(str, size.hidden))} units in the place of 1024 x 1024."


SLOW_TARGETS = WorstLarger(DOT, ("N = 50", "N = 100", "N = 200", "N = 500"), than="N = 10")
UNLOGGED_ACTIONS = ends(DOT, "TD-learning", "larger", than="offline SARSA")


def _target_periods(scale: Scale, folders: Folders) -> Design:
    return target_periods(PERIOD_SIZES[scale], {"FQI": DQN, "CQL": CQL})


def _out_of_sample(scale: Scale, folders: Folders) -> Design:
    return out_of_sample(SIZES[scale])


TARGET_UPDATE_FREQUENCY = Experiment(
    id="figure-A.9",
    label="fig:target_update_frequency",
    title="Target networks that are updated every N steps",
    claim="Slower target updates may reduce co-adaptation at first (N = 5 to 10), and very slow ones (N = 50 to 500) "
    "lead to larger dot products again, for FQI and for CQL.",
    printed="Curves only, N = 5, 10, 50, 100, 200, 500, three seeds.",
    design=_target_periods,
    checks=(SLOW_TARGETS,),
    picture=Curves((DOT,), log=(DOT,)),
    needs=NEEDS,
)

OUT_OF_SAMPLE = Experiment(
    id="figure-A.10",
    label="fig:out_of_sample_actions",
    title="TD-learning and offline SARSA in gridworlds",
    claim="Feature dot products are higher under TD-learning, whose next actions may be unlogged, than under offline "
    "SARSA.",
    printed="Curves only, two gridworlds, 256 transitions, three seeds.",
    design=_out_of_sample,
    checks=(UNLOGGED_ACTIONS,),
    picture=Curves((DOT,)),
    needs=NEEDS,
)

GRIDWORLD_FIGURES = (TARGET_UPDATE_FREQUENCY, OUT_OF_SAMPLE)
