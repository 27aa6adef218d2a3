"""DR3 on the data of a game, in a minute: CQL on the 1 % of a MinAtar replay that comes with dr3.

The setting is that of docs/results/minatar.md, a third as long. Without pgx (its games are under the GPL, so nothing
installs it unasked) the features are looked at and no policy is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from dr3.methods import CQL
from dr3.paper.findings import Finding, Results, as_list, at_the_end, average_returns, median, only
from dr3.regularizers import DR3, Regularizer
from dr3.sweeps import Task

DATA = "sample:minatar-breakout-1%"
METHOD = CQL(
    alpha=1.0,
    hidden=(128,),
    learning_rate=2.5e-4,
    adam_epsilon=3.1e-4,
    batch_size=32,
    target_period=200,
    error="huber",
)
COEFFICIENT = 0.01  # chosen on other seeds: docs/results/minatar.md
TRIES = 10


@dataclass(frozen=True)
class BreakoutCurve:
    """CQL on the sample, over all seeds, with a regularizer or without."""

    updates: int
    seeds: int
    regularizer: Regularizer | None = None

    @property
    def folder(self) -> str:
        parts = ("minatar-breakout", METHOD.name) + (() if self.regularizer is None else (self.regularizer.name,))
        return "-".join(parts if can_play() else (*parts, "unplayed"))

    def task(self, seed: int) -> Task:
        return Task(
            DATA,
            METHOD,
            (self.regularizer,),
            (seed,),
            steps=self.updates,
            env="auto" if can_play() else None,
            metrics_every=max(1, self.updates // 20),
            evaluate_every=max(1, self.updates // TRIES),
        )


def can_play() -> bool:
    return find_spec("pgx") is not None


def breakout_curves(updates: int, seeds: int) -> dict[str, BreakoutCurve]:
    return {"cql": BreakoutCurve(updates, seeds), "cql+dr3": BreakoutCurve(updates, seeds, DR3(COEFFICIENT))}


def judge_breakout(curves: dict[str, BreakoutCurve], results: Results) -> Finding:
    final = {name: at_the_end(results[curve]) for name, curve in curves.items()}
    holds = median(final["cql+dr3"]) < median(final["cql"])
    claim, rule = "DR3 keeps the dot products small", "Medians over seeds: the last dot product is smaller with DR3"
    sentence = (
        f"On 1 % of a replay of MinAtar's Breakout, with DR3 the dot products end at {median(final['cql+dr3']):.3g} "
        f"instead of {median(final['cql']):.3g}"
    )
    numbers: dict[str, object] = {"final_dot_product_by_seed": {name: as_list(of) for name, of in final.items()}}
    if played := all(run.evaluations for curve in curves.values() for run in results[curve]):
        average = {name: average_returns(results[curve]) for name, curve in curves.items()}
        holds = holds and median(average["cql+dr3"]) >= median(average["cql"])
        claim += ", and the policy is on average over training at least as good"
        rule += ", and the average return over training is not smaller"
        differences = ", ".join(f"{difference:+.1f}" for difference in average["cql+dr3"] - average["cql"])
        sentence += (
            f", and over training the return averages {median(average['cql+dr3']):.1f} instead of "
            f"{median(average['cql']):.1f} (medians; differences by seed {differences})"
        )
        numbers["average_return_by_seed"] = {name: as_list(of) for name, of in average.items()}
    else:
        sentence += ". No policy was tried: that needs the game (pip install 'dr3[minatar]', under the GPL)"
    return Finding(
        id="minatar",
        claim=f"CQL on the data of a game: {claim}.",
        rule=f"{rule}.",
        holds=holds,
        sentence=f"{sentence}.",
        numbers={**numbers, "played": played},
        results=only(curves, results),
    )
