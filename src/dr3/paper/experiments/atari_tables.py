"""The paper's tables of Atari scores."""

from __future__ import annotations

from dr3.paper.experiments.atari import NEEDS, SHARES, Compared
from dr3.paper.experiments.beside import Aggregates, ByWorld
from dr3.paper.experiments.checks import Learned, NotWorse, Provided, gain
from dr3.paper.experiments.declaration import Check, Experiment
from dr3.paper.experiments.evidence import Measure
from dr3.paper.experiments.pictures import Intervals

ALL = tuple(SHARES)
FOUR = Compared(("CQL", "CQL + DR3", "REM", "REM + DR3"), ALL)


def _gain(treated: str, base: str, measure: Measure, statistic: str = "mean") -> Check:
    """Where neither learned, there is nothing to be said."""
    return Provided((Learned((base, treated)),), gain(treated, base, measure, statistic=statistic))


def _gains(measure: Measure, statistic: str = "IQM") -> tuple[Check, Check]:
    return _gain("CQL + DR3", "CQL", measure, statistic), _gain("REM + DR3", "REM", measure, statistic)


AVERAGE = Experiment(
    id="table-1",
    label="tab:cql_res",
    title="IQM of the performance averaged over training",
    claim="DR3 improves the average performance (training stability) of CQL and of REM on all three data sets.",
    printed="5 %: CQL 78.1 to 105.7 with DR3, REM 25.9 to 60.2; the text: 25 % better on average for CQL.",
    design=FOUR,
    checks=_gains("average"),
    numbers=Aggregates("atari-iqm-average"),
    picture=Intervals("average"),
    needs=NEEDS,
)

STOP_GRADIENT = Experiment(
    id="table-A.1",
    label="tab:rem_phi_res",
    title="DR3 with a stop-gradient (Δ') on REM",
    claim="Δ' improves over REM too, by about 130 %, and is comparable to DR3 or somewhat worse.",
    printed="5 %: REM 25.9, REM + Δ' and REM + DR3 about twice that (see the numbers).",
    design=Compared(("REM", "REM + Δ'", "REM + DR3"), ALL, laptop_shares=("1%", "5%")),
    checks=(_gain("REM + Δ'", "REM", "average", "IQM"), NotWorse("REM + DR3", "REM + Δ'")),
    numbers=Aggregates("atari-stop-gradient"),
    picture=Intervals("average"),
    needs=NEEDS,
)

FINAL = Experiment(
    id="table-F.1",
    label="tab:cql_res_median",
    title="IQM of the final performance",
    claim="DR3 improves the final performance of CQL and of REM on all three data sets.",
    printed="As table F.3's final medians, number by number: one table printed twice (docs/paper-audit.md).",
    design=FOUR,
    checks=_gains("final"),
    numbers=Aggregates("atari-iqm-final"),
    picture=Intervals("final"),
    needs=NEEDS,
)

MEDIANS = Experiment(
    id="table-F.3",
    label="tab:cql_res_median",
    title="Medians of final and average performance",
    claim="By medians too, DR3 improves CQL and REM, at the end and on average over training.",
    printed="See the numbers.",
    design=FOUR,
    checks=(*_gains("final", "median"), *_gains("average", "median")),
    numbers=Aggregates("atari-median", "median"),
    picture=Intervals("average", "median"),
    needs=NEEDS,
)


def _by_game(number: int, base: str, share: str) -> Experiment:
    treated = f"{base} + DR3"
    name = f"{base.lower()}-{share.rstrip('%')}"
    return Experiment(
        id=f"table-F.{number}",
        label=f"tab:{base.lower()}_dqn_{share.rstrip('%')}",
        title=f"Returns of {base} by game, {'first ' if share == '10%' else ''}{share} of the data",
        claim=f"With DR3, {base} ends with higher returns and has higher returns on average over training.",
        printed="Mean returns of 17 games with standard deviations over 5 runs: see the numbers.",
        design=Compared((base, treated), (share,)),
        checks=(_gain(treated, base, "final"), _gain(treated, base, "average")),
        numbers=ByWorld(f"atari-{name}"),
        picture=Intervals("average"),
        needs=NEEDS,
    )


ATARI_TABLES = (
    AVERAGE,
    STOP_GRADIENT,
    FINAL,
    MEDIANS,
    *(_by_game(4 + number, "CQL", share) for number, share in enumerate(ALL)),
    *(_by_game(7 + number, "REM", share) for number, share in enumerate(ALL)),
)
