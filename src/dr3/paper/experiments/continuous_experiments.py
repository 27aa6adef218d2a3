"""The paper's figures and tables of D4RL tasks."""

from __future__ import annotations

import numpy as np

from dr3.paper.auditing.runs import probabilities
from dr3.paper.experiments.beside import ByWorld
from dr3.paper.experiments.bundle import COSINE, DOT, SRANK
from dr3.paper.experiments.checks import Compare, Improves, Learned, Provided, declines, ends, gain
from dr3.paper.experiments.continuous_setups import (
    ANTMAZE,
    BEHAVIOUR_REGULARIZED,
    KITCHEN,
    KITCHEN_NEEDS,
    MAZE_NEEDS,
    MUJOCO,
    MUJOCO_NEEDS,
)
from dr3.paper.experiments.declaration import Experiment, Row
from dr3.paper.experiments.evidence import SCORE, Evidence
from dr3.paper.experiments.pictures import Curves, Probability

TWO_MILLION = 2 / 3  # of a training of 3M updates


def _audited(evidence: Evidence) -> list[Row]:
    """The probabilities that the paper prints, recomputed from its own tables."""
    return [
        Row(f"{check.statement} (from the paper's tables)", check.published, f"{check.recomputed}: {check.verdict}")
        for check in probabilities(np.random.default_rng(0))
    ]


ANTMAZE_TABLE = Experiment(
    id="table-2",
    label="tab:cql_d4rl",
    title="CQL on AntMaze after 2M and 3M updates",
    claim="After 2M and after 3M updates, six and nine times as many as usual, CQL + DR3 outperforms CQL.",
    printed="antmaze-medium-play: 24.0 to 73.0 with DR3 at 2M; antmaze-large-diverse: 1.3 to 25.7.",
    design=ANTMAZE,
    checks=tuple(
        Provided((Learned(("CQL", "CQL + DR3")),), gain("CQL + DR3", "CQL", measure))
        for measure in (TWO_MILLION, "final")
    ),
    numbers=ByWorld("antmaze", SCORE),
    picture=Curves((SCORE, DOT), log=(DOT,)),
    needs=MAZE_NEEDS,
)

MUJOCO_FIGURE = Experiment(
    id="figure-A.3",
    label="fig:mujoco_results_from_iup",
    title="CQL on MuJoCo with 20 % of a SAC's replay",
    claim="DR3 stabilises CQL on Hopper and prevents its collapse on Walker2d and Ant; srank is higher and the feature "
    "dot products much smaller with DR3.",
    printed="Curves only, 4M updates.",
    design=MUJOCO,
    checks=(
        Compare(SCORE, "CQL + DR3", "smaller", "CQL", "spread"),
        Provided((declines("CQL"),), gain("CQL + DR3", "CQL", "late")),
        ends(SRANK, "CQL + DR3", "larger", than="CQL"),
        ends(DOT, "CQL + DR3", "smaller", than="CQL"),
    ),
    picture=Curves((SCORE, SRANK, DOT), log=(DOT,)),
    needs=MUJOCO_NEEDS,
)

MUJOCO_COSINES = Experiment(
    id="figure-A.12",
    label="fig:mujoco_cosine",
    title="Cosine similarities on MuJoCo",
    claim="DR3 reduces the cosine similarity of CQL's features, whether it grows (Ant, Walker2d) or falls (Hopper).",
    printed="Curves only.",
    design=MUJOCO,
    checks=(ends(COSINE, "CQL + DR3", "smaller", than="CQL"),),
    picture=Curves((COSINE,)),
    needs=MUJOCO_NEEDS,
)

SIGNIFICANCE = Experiment(
    id="figure-A.15",
    label="fig:significance",
    title="Probability that CQL + DR3 improves on CQL",
    claim="The probability of improvement of CQL + DR3 over CQL on AntMaze (and on Kitchen) is significantly above 0.5 "
    "and meaningful (above 0.75).",
    printed="AntMaze 0.83 (0.7, 0.96), Kitchen 0.8 (0.6, 1.0).",
    design=ANTMAZE,
    checks=(Improves("CQL + DR3", "CQL", TWO_MILLION),),
    numbers=_audited,
    picture=Probability("CQL + DR3", "CQL", TWO_MILLION),
    needs=MAZE_NEEDS,
)

KITCHEN_TABLE = Experiment(
    id="table-A.2",
    label="tab:cql_kitchen",
    title="CQL on Franka Kitchen after 2M updates",
    claim="After 2M updates CQL + DR3 outperforms CQL on all three kitchen tasks.",
    printed="kitchen-partial: 20.67 to 40.67 with DR3.",
    design=KITCHEN,
    checks=(gain("CQL + DR3", "CQL", "final", by="each"),),
    numbers=ByWorld("kitchen", SCORE),
    picture=Curves((SCORE, DOT), log=(DOT,)),
    needs=KITCHEN_NEEDS,
)

BRAC_TABLE = Experiment(
    id="table-F.2",
    label="tab:brac",
    title="BRAC on the MuJoCo tasks",
    claim="With DR3, BRAC ends with a higher performance and has a higher performance averaged over training.",
    printed="Averages and final scores on 15 data sets: see the numbers.",
    design=BEHAVIOUR_REGULARIZED,
    checks=tuple(
        Provided((Learned(("BRAC", "BRAC + DR3")),), gain("BRAC + DR3", "BRAC", measure))
        for measure in ("final", "average")
    ),
    numbers=ByWorld("brac", SCORE),
    picture=Curves((SCORE, DOT), log=(DOT,)),
    needs=MUJOCO_NEEDS,
)

CONTINUOUS = (ANTMAZE_TABLE, MUJOCO_FIGURE, MUJOCO_COSINES, SIGNIFICANCE, KITCHEN_TABLE, BRAC_TABLE)
