"""The paper's figures of Atari games."""

from __future__ import annotations

from dr3.paper.experiments.atari import FIVE, NEEDS, SHARES, TWO, UPDATES, Compared, FromGoodSolution
from dr3.paper.experiments.bundle import COSINE, DOT, MEAN_Q, SRANK, TD_ERROR
from dr3.paper.experiments.checks import (
    Compare,
    Learned,
    NotWorse,
    Provided,
    collapse,
    declines,
    ends,
    falls,
    gain,
    grows,
    level,
    settles,
    stays_small,
)
from dr3.paper.experiments.declaration import Experiment, Scale
from dr3.paper.experiments.evidence import LAYERS, SCORE
from dr3.paper.experiments.pictures import Curves, Layers, Overall
from dr3.paper.presets import AtariSettings
from dr3.runs.outcomes import RETURN

ALL = tuple(SHARES)
CLOSE_TO_1 = 0.9  # a cosine
# The paper makes a quarter of its updates here; of ours that would be 31 copies of the target network, too few.
LABEL_NOISE_STEPS: dict[Scale, int] = {
    "paper": AtariSettings().label_noise_iterations * AtariSettings().gradient_steps_per_iteration,
    "laptop": UPDATES["5%"] // 2,
}

DOT_PRODUCTS = Experiment(
    id="figure-1",
    label="fig:dot_products",
    title="Feature dot products rise when backups look at unlogged actions",
    claim="Feature dot products grow under TD-learning and Q-learning, although Q-values settle; with offline SARSA "
    "and supervised regression they stay low.",
    printed="Curves only, two games, 1 % of the data.",
    design=Compared(("supervised regression", "offline SARSA", "TD-learning", "DQN"), ("1%",), TWO),
    checks=(
        ends(DOT, "TD-learning", "larger", than="offline SARSA"),
        ends(DOT, "TD-learning", "larger", than="supervised regression"),
        ends(DOT, "DQN", "larger", than="offline SARSA"),
        ends(DOT, "DQN", "larger", than="supervised regression"),
        grows(DOT, "TD-learning"),
        grows(DOT, "DQN"),
        settles(MEAN_Q, "DQN"),
    ),
    picture=Curves((DOT, MEAN_Q), log=(DOT,)),
    needs=NEEDS,
)

STABILITY = Experiment(
    id="figure-2",
    label="fig:stability",
    title="From a good solution, offline training leaves it",
    claim="DQN and CQL that start from a good Q-function with small feature dot products get worse with further "
    "training, while the dot products grow and the loss stays small.",
    printed="Curves only: returns fall at once, dot products rise.",
    design=FromGoodSolution(("DQN", "CQL")),
    checks=tuple(
        check for base in ("DQN", "CQL") for check in (falls(base), grows(DOT, base, since="start"), stays_small(base))
    ),
    picture=Curves((RETURN, DOT, TD_ERROR), log=(DOT, TD_ERROR)),
    needs=NEEDS,
)

OVERALL = Experiment(
    id="figure-4",
    label="fig:atari_all_combined",
    title="Normalised performance over training with REM and CQL",
    claim="REM gets worse with more training; REM + DR3 stays better and ends higher, and CQL + DR3 ends higher than "
    "CQL.",
    printed="Curves of the IQM over 17 games; the text: CQL + DR3 ends 20 % above CQL.",
    design=Compared(("REM", "REM + DR3", "CQL", "CQL + DR3"), ALL),
    checks=(
        Provided((Learned(("REM",)),), declines("REM")),
        Provided((Learned(("REM", "REM + DR3")),), gain("REM + DR3", "REM", "final")),
        Provided((Learned(("CQL", "CQL + DR3")),), gain("CQL + DR3", "CQL", "final")),
    ),
    picture=Overall((("REM", "REM + DR3"), ("CQL", "CQL + DR3"))),
    needs=NEEDS,
)

RANK = Experiment(
    id="figure-5",
    label="fig:iup_is_fixed",
    title="The effective rank of the features, with and without DR3",
    claim="DR3 alleviates rank collapse without aiming at it: with DR3 the srank of CQL's features ends higher.",
    printed="Curves only, three games, 5 % of the data.",
    design=Compared(("CQL", "CQL + DR3"), ("1%",), TWO, {"laptop": UPDATES["1%"] // 2}, wide=True),
    checks=(Provided((collapse(SRANK, "CQL", happens=True),), ends(SRANK, "CQL + DR3", "larger", than="CQL")),),
    picture=Curves((SRANK,)),
    needs=NEEDS,
)

LABEL_NOISE = Experiment(
    id="figure-6",
    label="fig:other_penalty_main",
    title="DR3 and the regularizer of label noise, on CQL and DQN",
    claim="Both penalties improve CQL, and the simple one (DR3) is not worse than the one that label noise induces.",
    printed="Curves only.",
    design=Compared(
        ("CQL", "CQL + DR3", "CQL + label noise", "DQN", "DQN + DR3", "DQN + label noise"),
        games=FIVE,
        steps=LABEL_NOISE_STEPS,
    ),
    checks=(
        Provided((Learned(("CQL", "CQL + DR3")),), gain("CQL + DR3", "CQL")),
        Provided((Learned(("CQL", "CQL + label noise")),), gain("CQL + label noise", "CQL")),
        NotWorse("CQL + DR3", "CQL + label noise"),
        NotWorse("DQN + DR3", "DQN + label noise"),
    ),
    picture=Overall((("CQL", "CQL + DR3", "CQL + label noise"), ("DQN", "DQN + DR3", "DQN + label noise"))),
    needs=NEEDS,
)

FIVE_GAMES = Experiment(
    id="figure-A.1",
    label="fig:dot_product_increases_five_games",
    title="Co-adaptation of DQN and CQL, game by game",
    claim="Feature dot products keep rising with training for DQN and for CQL, while the average Q-value has settled.",
    printed="Curves only, five games, three seeds; on Seaquest the Q-values of DQN diverge.",
    design=Compared(("DQN", "CQL"), games=FIVE),
    checks=(grows(DOT, "DQN"), grows(DOT, "CQL"), settles(MEAN_Q, "DQN"), settles(MEAN_Q, "CQL")),
    picture=Curves((DOT, MEAN_Q), log=(DOT,)),
    needs=NEEDS,
)

ROBUSTNESS = Experiment(
    id="figure-A.2",
    label="fig:robustness",
    title="Layers put back to their initial values",
    claim="With DR3, the policies of CQL and REM keep more of their return when the last layer is re-initialised.",
    printed="Heat maps only.",
    design=Compared(("CQL", "CQL + DR3", "REM", "REM + DR3"), games=FIVE),
    checks=tuple(
        Provided((Learned((base,)),), Compare(LAYERS, f"{base} + DR3", "larger", base)) for base in ("CQL", "REM")
    ),
    picture=Layers(),
    needs=NEEDS,
)

RANKS = Experiment(
    id="figure-A.4",
    label="fig:rank_trends_5_games",
    title="The rank of CQL's features, game by game",
    claim="With DR3 the rank of CQL's features does not collapse to very small values; it need not be higher.",
    printed="Curves only, five games; “we do not claim that the ranks with DR3 are necessarily higher”.",
    design=Compared(("CQL", "CQL + DR3"), games=FIVE),
    checks=(collapse(SRANK, "CQL + DR3", happens=False),),
    picture=Curves((SRANK,)),
    needs=NEEDS,
)

RANKS_DQN = Experiment(
    id="figure-A.5",
    label="fig:rank_collapse_test_for_dqn",
    title="Performance and rank of DQN",
    claim="With DR3 the srank of DQN's features ends higher instead of collapsing, and DQN + DR3 performs better.",
    printed="Curves only.",
    design=Compared(("DQN", "DQN + DR3"), ("1%",), TWO, {"laptop": UPDATES["1%"] // 2}, wide=True),
    checks=(
        Provided((collapse(SRANK, "DQN", happens=True),), ends(SRANK, "DQN + DR3", "larger", than="DQN")),
        Provided((Learned(("DQN", "DQN + DR3")),), gain("DQN + DR3", "DQN")),
    ),
    picture=Curves((SCORE, SRANK)),
    needs=NEEDS,
)

RANKS_REM = Experiment(
    id="figure-A.6",
    label="fig:rank_collapse_test_for_rem",
    title="Performance and rank of REM",
    claim="REM + DR3 performs better than REM although its srank is the smaller one.",
    printed="Curves only.",
    design=Compared(("REM", "REM + DR3"), games=FIVE),
    checks=(
        Provided((Learned(("REM", "REM + DR3")),), gain("REM + DR3", "REM")),
        ends(SRANK, "REM + DR3", "smaller", than="REM"),
    ),
    picture=Curves((SCORE, SRANK)),
    needs=NEEDS,
)

DOTS_REM = Experiment(
    id="figure-A.7",
    label="fig:rem_dot_products",
    title="Feature dot products of REM",
    claim="REM co-adapts its features although their rank is high; with DR3 the dot products are smaller.",
    printed="Curves only, on a log scale.",
    design=Compared(("REM", "REM + DR3"), games=FIVE),
    checks=(grows(DOT, "REM"), ends(DOT, "REM + DR3", "smaller", than="REM")),
    picture=Curves((DOT,), log=(DOT,)),
    needs=NEEDS,
)

TWO_PENALTIES = Experiment(
    id="figure-A.8",
    label="fig:explicit_m_choices",
    title="DR3 and the regularizer of label noise, game by game",
    claim="The penalty that label noise induces improves on the base method in all five games, and works as well as "
    "DR3 in four of them.",
    printed="Curves only; “almost identical learning curves on 4/5 games”.",
    design=Compared(("CQL", "CQL + DR3", "CQL + label noise"), games=FIVE, steps=LABEL_NOISE_STEPS),
    checks=(
        Provided((Learned(("CQL", "CQL + label noise")),), gain("CQL + label noise", "CQL", by="each")),
        NotWorse("CQL + label noise", "CQL + DR3", by="majority"),
    ),
    picture=Curves((SCORE,)),
    needs=NEEDS,
)

COSINES = Experiment(
    id="figure-A.11",
    label="fig:atari_cosine",
    title="Cosine similarities with and without DR3",
    claim="DQN, REM and CQL come close to a cosine similarity of 1, and DR3 reduces it.",
    printed="Curves only.",
    design=Compared(("DQN", "DQN + DR3", "REM", "REM + DR3", "CQL", "CQL + DR3"), games=FIVE),
    checks=tuple(
        check
        for base in ("DQN", "REM", "CQL")
        for check in (level(COSINE, base, above=CLOSE_TO_1), ends(COSINE, f"{base} + DR3", "smaller", than=base))
    ),
    picture=Curves((COSINE,)),
    needs=NEEDS,
)

STABLE_CQL = Experiment(
    id="figure-A.13",
    label="fig:cql_stability",
    title="CQL + DR3 from a good solution",
    claim="From a good solution CQL decays quickly, and CQL + DR3 is relatively more stable.",
    printed="Asterix: from 5000 to about 2000 for CQL, to about 4300 for CQL + DR3.",
    design=FromGoodSolution(("CQL", "CQL + DR3")),
    checks=(
        falls("CQL"),
        Provided((falls("CQL"),), Compare(RETURN, "CQL + DR3", "larger", "CQL")),
    ),
    picture=Curves((RETURN, DOT), log=(DOT,)),
    needs=NEEDS,
)

STABLE_DQN = Experiment(
    id="figure-A.14",
    label="fig:dqn_stability",
    title="DQN + DR3 from a good solution",
    claim="From a good solution DQN decays quickly, and DQN + DR3 is relatively more stable.",
    printed="Curves only.",
    design=FromGoodSolution(("DQN", "DQN + DR3")),
    checks=(
        falls("DQN"),
        Provided((falls("DQN"),), Compare(RETURN, "DQN + DR3", "larger", "DQN")),
    ),
    picture=Curves((RETURN, DOT), log=(DOT,)),
    needs=NEEDS,
)


def _all_games(id: str, label: str, base: str, *, dots: bool) -> Experiment:
    treated = f"{base} + DR3"
    claim = (
        f"On a majority of games {treated} attains smaller feature dot products than {base}."
        if dots
        else f"On a majority of games {treated} performs better than {base}."
    )
    check = (
        ends(DOT, treated, "smaller", than=base, by="majority")
        if dots
        else Provided((Learned((base, treated)),), gain(treated, base, by="majority"))
    )
    return Experiment(
        id=id,
        label=label,
        title=f"{'Feature dot products' if dots else 'Learning curves'} of {base} on 5 % of the data, all games",
        claim=claim,
        printed="Curves only, 17 games.",
        design=Compared((base, treated)),
        checks=(check,),
        picture=Curves((DOT,), log=(DOT,)) if dots else Curves((SCORE,)),
        needs=NEEDS,
    )


ATARI_FIGURES = (
    DOT_PRODUCTS,
    STABILITY,
    OVERALL,
    RANK,
    LABEL_NOISE,
    FIVE_GAMES,
    ROBUSTNESS,
    RANKS,
    RANKS_DQN,
    RANKS_REM,
    DOTS_REM,
    TWO_PENALTIES,
    COSINES,
    STABLE_CQL,
    STABLE_DQN,
    _all_games("figure-F.1", "fig:cql_5_percent_all_games", "CQL", dots=False),
    _all_games("figure-F.2", "fig:rem_5_percent_all_games", "REM", dots=False),
    _all_games("figure-F.3", "fig:cql_5_percent_all_games_dot_products", "CQL", dots=True),
    _all_games("figure-F.4", "fig:rem_5_percent_all_games_dot_products", "REM", dots=True),
)
