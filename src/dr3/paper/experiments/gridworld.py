"""The gridworld family: the worlds, sizes and curves of `dr3 demo`, as three of the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping

from dr3.methods import CQL, DQN
from dr3.paper import gridworlds
from dr3.paper.experiments.atari import FIVE, Compared
from dr3.paper.experiments.atari import NEEDS as ATARI_NEEDS
from dr3.paper.experiments.checks import DOT, MEAN_Q, Ends, Grows, Settles, WorstEndsLarger
from dr3.paper.experiments.declaration import Arm, Design, Experiment, Folders, Scale
from dr3.paper.experiments.pictures import Curves
from dr3.paper.experiments.scoring import Exact

SIZES: dict[Scale, gridworlds.Size] = {
    "smoke": gridworlds.Size(hidden=(8, 8), updates=4, seeds=1),
    "laptop": gridworlds.QUICK,
    "paper": gridworlds.FULL,
}
NEEDS: Mapping[Scale, str] = dict.fromkeys(SIZES, "nothing: data are sampled")
NAMES = {"td": "TD-learning", "sarsa": "offline SARSA", "supervised": "supervised regression"}


def out_of_sample(scale: Scale, folders: Folders) -> Design:
    size = SIZES[scale]
    curves = gridworlds.out_of_sample_curves(size)
    return Design(
        tuple(_arm(NAMES[method], curve, size) for (_, method), curve in curves.items()), note=_note(scale, size)
    )


def target_periods(scale: Scale, folders: Folders) -> Design:
    size = SIZES[scale]
    arms = [
        _arm(f"N = {period}", curve, size, group)
        for group, base in (("FQI", DQN), ("CQL", CQL))
        for period, curve in gridworlds.target_period_curves(size, base).items()
    ]
    return Design(tuple(arms), note=_note(scale, size))


def both_halves(scale: Scale, folders: Folders) -> Design:
    """Figure 1: policy evaluation in gridworlds on the left, Q-learning on Atari on the right."""
    left, right = out_of_sample(scale, folders), Compared(("DQN",), games=FIVE)(scale, folders)
    return Design((*left.arms, *right.arms), preparations=right.preparations, note=f"{left.note} {right.note}".strip())


def _arm(label: str, curve: gridworlds.GridworldCurve, size: gridworlds.Size, group: str = "") -> Arm:
    tasks = tuple(curve.task(seed) for seed in range(size.seeds))
    return Arm(label, curve.world, tasks, Exact(curve.world, size.discount), group)


def _note(scale: Scale, size: gridworlds.Size) -> str:
    if scale == "paper":
        return ""
    return f"Networks have {' x '.join(map(str, size.hidden))} units in the place of 1024 x 1024."


DOT_PRODUCTS = Experiment(
    id="figure-1",
    label="fig:dot_products",
    title="Feature dot products rise when backups look at unlogged actions",
    claim="Feature dot products grow under TD-learning and Q-learning, although Q-values settle; with offline SARSA "
    "and supervised regression they stay low.",
    printed="Curves only.",
    design=both_halves,
    checks=(
        Ends(DOT, "TD-learning", "larger", than="offline SARSA"),
        Ends(DOT, "TD-learning", "larger", than="supervised regression"),
        Grows(DOT, "DQN"),
        Settles(MEAN_Q, "DQN"),
    ),
    picture=Curves((DOT, MEAN_Q), log=(DOT,)),
    needs={scale: f"gridworlds: nothing; right half: {ATARI_NEEDS[scale]}" for scale in SIZES},
)

TARGET_PERIODS = Experiment(
    id="figure-A.9",
    label="fig:target_update_frequency",
    title="Target networks that are updated every N steps",
    claim="Slower target updates may reduce co-adaptation at first (N = 5 to 10), and very slow ones (N = 50 to 500) "
    "lead to larger dot products again, for FQI and for CQL.",
    printed="Curves only, N = 5, 10, 50, 100, 200, 500, three seeds.",
    design=target_periods,
    checks=(WorstEndsLarger(DOT, ("N = 50", "N = 100", "N = 200", "N = 500"), than="N = 10"),),
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
    design=out_of_sample,
    checks=(Ends(DOT, "TD-learning", "larger", than="offline SARSA"),),
    picture=Curves((DOT,)),
    needs=NEEDS,
)

GRIDWORLD_FIGURES = (DOT_PRODUCTS, TARGET_PERIODS, OUT_OF_SAMPLE)
