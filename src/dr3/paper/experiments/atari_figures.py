"""The paper's figures of Atari games."""

from __future__ import annotations

from dr3.paper.experiments.atari import FIVE, NEEDS, SHARES, Compared, FromGoodSolution
from dr3.paper.experiments.checks import (
    COSINE,
    DOT,
    MEAN_Q,
    SRANK,
    Ends,
    Falls,
    Grows,
    Keeps,
    NoCollapse,
    Robust,
    Settles,
)
from dr3.paper.experiments.declaration import Experiment
from dr3.paper.experiments.evidence import SCORE
from dr3.paper.experiments.pictures import Curves, Layers, Overall
from dr3.paper.experiments.score_checks import Declines, Gain, NotWorse
from dr3.paper.presets import Atari
from dr3.runs.outcomes import RETURN

ALL = tuple(SHARES)
LABEL_NOISE_STEPS = Atari().label_noise_iterations * Atari().gradient_steps_per_iteration

STABILITY = Experiment(
    id="figure-2",
    label="fig:stability",
    title="From a good solution, offline training leaves it",
    claim="DQN and CQL that start from a good Q-function with small feature dot products get worse with further "
    "training, while the dot products grow and the loss stays small.",
    printed="Curves only: returns fall at once, dot products rise.",
    design=FromGoodSolution(("DQN", "CQL")),
    checks=(Falls("DQN"), Falls("CQL"), Grows(DOT, "DQN", since=0.0), Grows(DOT, "CQL", since=0.0)),
    picture=Curves((RETURN, DOT, "losses/total"), log=(DOT, "losses/total")),
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
    checks=(Declines("REM"), Gain("REM + DR3", "REM", "final"), Gain("CQL + DR3", "CQL", "final")),
    picture=Overall((("REM", "REM + DR3"), ("CQL", "CQL + DR3"))),
    needs=NEEDS,
)

RANK = Experiment(
    id="figure-5",
    label="fig:iup_is_fixed",
    title="The effective rank of the features, with and without DR3",
    claim="DR3 alleviates rank collapse without aiming at it: with DR3 the srank of CQL's features ends higher.",
    printed="Curves only, three games, 5 % of the data.",
    design=Compared(("CQL", "CQL + DR3"), games=FIVE[:3]),
    checks=(Ends(SRANK, "CQL + DR3", "larger", than="CQL"),),
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
        paper_steps=LABEL_NOISE_STEPS,
    ),
    checks=(
        Gain("CQL + DR3", "CQL"),
        Gain("CQL + label noise", "CQL"),
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
    checks=(Grows(DOT, "DQN"), Grows(DOT, "CQL"), Settles(MEAN_Q, "DQN"), Settles(MEAN_Q, "CQL")),
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
    checks=(Robust("CQL + DR3", than="CQL"), Robust("REM + DR3", than="REM")),
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
    checks=(NoCollapse(SRANK, "CQL + DR3"),),
    picture=Curves((SRANK,)),
    needs=NEEDS,
)

RANKS_DQN = Experiment(
    id="figure-A.5",
    label="fig:rank_collapse_test_for_dqn",
    title="Performance and rank of DQN",
    claim="With DR3 the srank of DQN's features ends higher instead of collapsing, and DQN + DR3 performs better.",
    printed="Curves only.",
    design=Compared(("DQN", "DQN + DR3"), games=FIVE),
    checks=(Ends(SRANK, "DQN + DR3", "larger", than="DQN"), Gain("DQN + DR3", "DQN")),
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
    checks=(Gain("REM + DR3", "REM"), Ends(SRANK, "REM + DR3", "smaller", than="REM")),
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
    checks=(Grows(DOT, "REM"), Ends(DOT, "REM + DR3", "smaller", than="REM")),
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
    design=Compared(("CQL", "CQL + DR3", "CQL + label noise"), games=FIVE, paper_steps=LABEL_NOISE_STEPS),
    checks=(
        Gain("CQL + label noise", "CQL"),
        NotWorse("CQL + label noise", "CQL + DR3"),
        NotWorse("CQL + DR3", "CQL + label noise"),
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
    checks=tuple(Ends(COSINE, f"{base} + DR3", "smaller", than=base) for base in ("DQN", "REM", "CQL")),
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
    checks=(Falls("CQL"), Keeps("CQL + DR3", than="CQL")),
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
    checks=(Falls("DQN"), Keeps("DQN + DR3", than="DQN")),
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
    checks = (
        Ends(DOT, treated, "smaller", than=base) if dots else Ends(SCORE, treated, "larger", than=base),
        *(() if dots else (Gain(treated, base),)),
    )
    return Experiment(
        id=id,
        label=label,
        title=f"{'Feature dot products' if dots else 'Learning curves'} of {base} on 5 % of the data, all games",
        claim=claim,
        printed="Curves only, 17 games.",
        design=Compared((base, treated)),
        checks=checks,
        picture=Curves((DOT,), log=(DOT,)) if dots else Curves((SCORE,)),
        needs=NEEDS,
    )


ATARI_FIGURES = (
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
