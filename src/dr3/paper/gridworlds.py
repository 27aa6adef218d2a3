"""The paper's gridworld evidence (appendix A.6) as three findings, each with the rule by which it holds or does not.

The paper gives 256 transitions, two hidden layers of 1024 units, the target periods and three seeds. Learning rate
5e-3, discount 0.95 and batch 128 are those of the public gridworld code's experiments; the number of updates, and the
target period where the paper does not vary it, are ours. Each seed is a new draw of the data as well as of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dr3.methods import CQL, DQN, SARSA, TD, Method, Supervised
from dr3.paper.findings import (
    MEAN_Q,
    Finding,
    Results,
    as_list,
    at_the_end,
    average_returns,
    median,
    only,
    returns_of,
    words,
)
from dr3.regularizers import DR3, Regularizer
from dr3.sweeps import Task

SPARSE_WORLDS = ("grid16smoothsparse", "grid16randomsparse")
DENSE_WORLD = "grid16smoothobs"
TARGET_PERIODS = (5, 10, 50, 100, 200, 500)


@dataclass(frozen=True)
class Size:
    """How large the demonstration is, and what the paper leaves open."""

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


QUICK = Size(hidden=(128, 128), updates=8_000)
FULL = Size(hidden=(1024, 1024), updates=20_000)
SMOKE = Size(hidden=(8, 8), updates=40, seeds=2)


@dataclass(frozen=True)
class GridworldCurve:
    """One line of a picture: a method on a world, over all seeds, each with data of its own."""

    world: str
    method: Method
    size: Size
    regularizer: Regularizer | None = None

    @property
    def folder(self) -> str:
        parts = [self.method.name]
        if self.method.synchronise_every is not None:
            parts.append(f"period-{self.method.synchronise_every}")
        if self.regularizer is not None:
            parts.append(self.regularizer.name)
        return f"{self.world}/{'-'.join(parts)}"

    @property
    def seeds(self) -> int:
        return self.size.seeds

    def task(self, seed: int) -> Task:
        return Task(
            f"{self.world}:seed={seed}",
            self.method,
            (self.regularizer,),
            (seed,),
            steps=self.size.updates,
            metrics_every=max(1, self.size.updates // 40),
            evaluate_every=max(1, self.size.updates // 20),
        )


# --- Finding 1: figure "out of sample actions" (A.6.2), and the regression of section 3.1 ---


def out_of_sample_curves(size: Size) -> dict[tuple[str, str], GridworldCurve]:
    period = {"target_period": size.evaluation_period}
    methods = (TD(**size.shared, **period), SARSA(**size.shared, **period), Supervised(**size.shared))
    return {(world, method.name): GridworldCurve(world, method, size) for world in SPARSE_WORLDS for method in methods}


def judge_out_of_sample(curves: dict[tuple[str, str], GridworldCurve], results: Results) -> Finding:
    final = {key: at_the_end(results[curve]) for key, curve in curves.items()}
    names = ("td", "sarsa", "supervised")
    medians = {world: {name: median(final[world, name]) for name in names} for world in SPARSE_WORLDS}
    holds = all(of["td"] > max(of["sarsa"], of["supervised"]) for of in medians.values())
    parts = [
        f"{of['td']:.3g} against {of['sarsa']:.3g} (SARSA) and {of['supervised']:.3g} (regression) on {world}"
        for world, of in medians.items()
    ]
    return Finding(
        id="out-of-sample-actions",
        claim="TD-learning, whose next actions may never have been logged, ends with larger feature dot products than "
        "offline SARSA and supervised regression.",
        rule="On both worlds the median over seeds of the last dot product is largest under TD-learning.",
        holds=holds,
        sentence=f"TD-learning's dot products end at {'; '.join(parts)}.",
        numbers={
            "median_final_dot_product": medians,
            "final_dot_product_by_seed": {
                world: {name: as_list(final[world, name]) for name in of} for world, of in medians.items()
            },
        },
        results=only(curves, results),
    )


# --- Finding 2: figure "target update frequency" (A.6.1) ---


def target_period_curves(size: Size, base: type[DQN | CQL] = DQN) -> dict[int, GridworldCurve]:
    return {n: GridworldCurve(DENSE_WORLD, base(**size.shared, target_period=n), size) for n in TARGET_PERIODS}


def judge_target_period(curves: dict[int, GridworldCurve], results: Results) -> Finding:
    final = {period: at_the_end(results[curve]) for period, curve in curves.items()}
    medians = {period: median(values) for period, values in final.items()}
    slow = max((period for period in medians if period >= 50), key=lambda period: medians[period])
    holds = medians[slow] > medians[10]
    trend = ", ".join(f"{value:.3g} (N = {period})" for period, value in medians.items())
    updates = results[curves[500]][0].config["steps"]
    worst = max(final, key=lambda period: final[period].max())
    return Finding(
        id="target-update-frequency",
        claim="A slower target network does not prevent co-adaptation: Q-learning's dot products rise again when the "
        "target is updated every N = 50 to 500 steps instead of every 10.",
        rule="The median over seeds of the last dot product is larger for the worst N of 50 and above than for N = 10.",
        holds=holds,
        sentence=f"Q-learning's dot products end at {trend} (medians; the largest of all runs is "
        f"{final[worst].max():.3g}, with N = {worst}). With N = 500 the target has moved {updates // 500} times.",
        numbers={
            "median_final_dot_product": {str(period): value for period, value in medians.items()},
            "final_dot_product_by_seed": {str(period): as_list(values) for period, values in final.items()},
            "decreases_from_5_to_10": medians[10] < medians[5],
        },
        results=only(curves, results),
    )


# --- Finding 3: Q-learning with and without DR3 (section 4) ---


def dr3_curves(size: Size) -> dict[str, GridworldCurve]:
    method = DQN(**size.shared, target_period=size.control_period)
    return {
        "dqn": GridworldCurve(DENSE_WORLD, method, size),
        "dqn+dr3": GridworldCurve(DENSE_WORLD, method, size, DR3(size.coefficient)),
    }


def judge_dr3(curves: dict[str, GridworldCurve], results: Results) -> Finding:
    final = {name: at_the_end(results[curve]) for name, curve in curves.items()}
    returns = {name: returns_of(results[curve]) for name, curve in curves.items()}
    average = {name: average_returns(results[curve]) for name, curve in curves.items()}
    last = {name: np.array([curve[-1] for curve in of]) for name, of in returns.items()}
    mean_q = {name: at_the_end(results[curve], MEAN_Q) for name, curve in curves.items()}
    smaller = median(final["dqn+dr3"]) < median(final["dqn"])
    better = median(average["dqn+dr3"]) >= median(average["dqn"])
    differences = ", ".join(f"{difference:+.1f}" for difference in average["dqn+dr3"] - average["dqn"])
    largest = 1 / (1 - curves["dqn"].method.discount)  # rewards are at most 1
    return Finding(
        id="dr3",
        claim="DR3 keeps the dot products small, and the greedy policy is on average over training at least as good.",
        rule="Medians over seeds: the last dot product is smaller with DR3, and the average over training of the "
        "greedy policy's exact return is not smaller.",
        holds=smaller and better,
        sentence=f"With DR3 the dot products end at {median(final['dqn+dr3']):.3g} instead of "
        f"{median(final['dqn']):.3g}, and over training the exact return of the greedy policy averages "
        f"{median(average['dqn+dr3']):.1f} instead of {median(average['dqn']):.1f} (medians; differences by seed "
        f"{differences}). The mean Q ends at {words(mean_q['dqn+dr3'])} with DR3 and at {words(mean_q['dqn'])} "
        f"without it; discounted, no policy earns more than {largest:.0f}.",
        numbers={
            "final_dot_product_by_seed": {name: as_list(values) for name, values in final.items()},
            "average_return_by_seed": {name: as_list(values) for name, values in average.items()},
            "final_return_by_seed": {name: as_list(values) for name, values in last.items()},
            "final_mean_q_by_seed": {name: as_list(values) for name, values in mean_q.items()},
            "largest_possible_value": largest,
            "dot_products_smaller": smaller,
            "average_return_not_smaller": better,
        },
        results=only(curves, results),
    )
