"""The paper's gridworld evidence (appendix A.6) as three findings, each with the rule by which it holds or does not.

The paper gives 256 transitions, two hidden layers of 1024 units, the target periods and three seeds. Learning rate
5e-3, discount 0.95 and batch 128 are those of the public gridworld code's experiments; the number of updates, and the
target period where the paper does not vary it, are ours. Each seed is a new draw of the data as well as of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.collect import load
from dr3.cores import available_cores
from dr3.methods import CQL, DQN, SARSA, TD, Method, Supervised
from dr3.regularizers import DR3, Regularizer
from dr3.sweeps import Task
from dr3.training import Runs, train

SPARSE_WORLDS = ("grid16smoothsparse", "grid16randomsparse")
DENSE_WORLD = "grid16smoothobs"
TARGET_PERIODS = (5, 10, 50, 100, 200, 500)
DOT_PRODUCT = "features/dot_product"
RETURN = "evaluation/return"
MEAN_Q = "q/data_mean"


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
class Curve:
    """One line of a picture: a method on a world, over all seeds."""

    world: str
    method: Method
    regularizer: Regularizer | None = None

    @property
    def folder(self) -> str:
        words = [self.method.name]
        if self.method.synchronise_every is not None:
            words.append(f"period-{self.method.synchronise_every}")
        if self.regularizer is not None:
            words.append(self.regularizer.name)
        return f"{self.world}/{'-'.join(words)}"

    def task(self, seed: int, size: Size) -> Task:
        """One seed of it, with data of its own."""
        return Task(
            f"{self.world}:seed={seed}",
            self.method,
            (self.regularizer,),
            (seed,),
            steps=size.updates,
            metrics_every=max(1, size.updates // 40),
            evaluate_every=max(1, size.updates // 20),
        )


Results = dict[Curve, list[Runs]]  # one run for each seed


@dataclass(frozen=True)
class Finding:
    """What the paper claims, by which rule we say that it holds, what came out, and the runs to see it by."""

    id: str
    claim: str
    rule: str
    holds: bool
    sentence: str
    numbers: dict[str, Any]
    results: Results


def findings(size: Size, out: Path, finished: Callable[[int, int], None]) -> list[Finding]:
    """Train everything, one run to a core, and judge it. `finished(done, of)` is told after each run.

    Runs that `out` already holds are not made again, and unfinished ones go on.
    """
    of_sample, of_period, of_dr3 = out_of_sample_curves(size), target_period_curves(size), _dr3_curves(size)
    curves = list(dict.fromkeys([*of_sample.values(), *of_period.values(), *of_dr3.values()]))  # each once, in order
    jobs = [(curve, seed) for seed in range(size.seeds) for curve in curves]
    results: Results = {curve: [] for curve in curves}
    with ThreadPoolExecutor(max_workers=available_cores()) as pool:
        runs = pool.map(lambda job: _train(*job, size, out), jobs)
        for done, ((curve, _), run) in enumerate(zip(jobs, runs, strict=True), start=1):
            results[curve].append(run)
            finished(done, len(jobs))
    return [
        _judge_out_of_sample(of_sample, results),
        _judge_target_period(of_period, results),
        _judge_dr3(of_dr3, results),
    ]


def _train(curve: Curve, seed: int, size: Size, out: Path) -> Runs:
    task = curve.task(seed, size)
    return train(
        load(task.data, discount=size.discount),
        task.method,
        regularizer=task.regularizers,
        steps=task.steps,
        seeds=task.seeds,
        out=out / "runs" / curve.folder / f"seed-{seed}",
        metrics_every=task.metrics_every,
        evaluate_every=task.evaluate_every,
        progress=False,
    )


# --- Finding 1: figure "out of sample actions" (A.6.2), and the regression of section 3.1 ---


def out_of_sample_curves(size: Size) -> dict[tuple[str, str], Curve]:
    period = {"target_period": size.evaluation_period}
    methods = (TD(**size.shared, **period), SARSA(**size.shared, **period), Supervised(**size.shared))
    return {(world, method.name): Curve(world, method) for world in SPARSE_WORLDS for method in methods}


def _judge_out_of_sample(curves: dict[tuple[str, str], Curve], results: Results) -> Finding:
    final = {key: _at_the_end(results[curve]) for key, curve in curves.items()}
    names = ("td", "sarsa", "supervised")
    medians = {world: {name: _median(final[world, name]) for name in names} for world in SPARSE_WORLDS}
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
                world: {name: _list(final[world, name]) for name in of} for world, of in medians.items()
            },
        },
        results=_only(curves, results),
    )


# --- Finding 2: figure "target update frequency" (A.6.1) ---


def target_period_curves(size: Size, base: type[DQN | CQL] = DQN) -> dict[int, Curve]:
    return {n: Curve(DENSE_WORLD, base(**size.shared, target_period=n)) for n in TARGET_PERIODS}


def _judge_target_period(curves: dict[int, Curve], results: Results) -> Finding:
    final = {period: _at_the_end(results[curve]) for period, curve in curves.items()}
    medians = {period: _median(values) for period, values in final.items()}
    slow = max((period for period in medians if period >= 50), key=lambda period: medians[period])
    holds = medians[slow] > medians[10]
    trend = ", ".join(f"{median:.3g} (N = {period})" for period, median in medians.items())
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
            "median_final_dot_product": {str(period): median for period, median in medians.items()},
            "final_dot_product_by_seed": {str(period): _list(values) for period, values in final.items()},
            "decreases_from_5_to_10": medians[10] < medians[5],
        },
        results=_only(curves, results),
    )


# --- Finding 3: Q-learning with and without DR3 (section 4) ---


def _dr3_curves(size: Size) -> dict[str, Curve]:
    method = DQN(**size.shared, target_period=size.control_period)
    return {"dqn": Curve(DENSE_WORLD, method), "dqn+dr3": Curve(DENSE_WORLD, method, DR3(size.coefficient))}


def _judge_dr3(curves: dict[str, Curve], results: Results) -> Finding:
    final = {name: _at_the_end(results[curve]) for name, curve in curves.items()}
    returns = {name: [carried(run.evaluations[RETURN][0]) for run in results[curve]] for name, curve in curves.items()}
    # Over training, without the untrained policy: the paper's measure of stability.
    average = {name: np.array([curve[1:].mean() for curve in of]) for name, of in returns.items()}
    last = {name: np.array([curve[-1] for curve in of]) for name, of in returns.items()}
    mean_q = {name: _at_the_end(results[curve], MEAN_Q) for name, curve in curves.items()}
    smaller = _median(final["dqn+dr3"]) < _median(final["dqn"])
    better = _median(average["dqn+dr3"]) >= _median(average["dqn"])
    differences = ", ".join(f"{difference:+.1f}" for difference in average["dqn+dr3"] - average["dqn"])
    largest = 1 / (1 - curves["dqn"].method.discount)  # rewards are at most 1
    return Finding(
        id="dr3",
        claim="DR3 keeps the dot products small, and the greedy policy is on average over training at least as good.",
        rule="Medians over seeds: the last dot product is smaller with DR3, and the average over training of the "
        "greedy policy's exact return is not smaller.",
        holds=smaller and better,
        sentence=f"With DR3 the dot products end at {_median(final['dqn+dr3']):.3g} instead of "
        f"{_median(final['dqn']):.3g}, and over training the exact return of the greedy policy averages "
        f"{_median(average['dqn+dr3']):.1f} instead of {_median(average['dqn']):.1f} (medians; differences by seed "
        f"{differences}). The mean Q ends at {_words(mean_q['dqn+dr3'])} with DR3 and at {_words(mean_q['dqn'])} "
        f"without it; no policy earns more than {largest:.0f}.",
        numbers={
            "final_dot_product_by_seed": {name: _list(values) for name, values in final.items()},
            "average_return_by_seed": {name: _list(values) for name, values in average.items()},
            "final_return_by_seed": {name: _list(values) for name, values in last.items()},
            "final_mean_q_by_seed": {name: _list(values) for name, values in mean_q.items()},
            "largest_possible_value": largest,
            "dot_products_smaller": smaller,
            "average_return_not_smaller": better,
        },
        results=_only(curves, results),
    )


def _only(curves: Mapping[Any, Curve], results: Results) -> Results:
    return {curve: results[curve] for curve in curves.values()}


def over_seeds(runs: list[Runs], metric: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The steps (T,) and the values (seeds, T) of a metric or an evaluation."""
    if metric == RETURN:
        return runs[0].evaluation_steps, np.concatenate([run.evaluations[metric] for run in runs])
    return runs[0].steps, np.concatenate([run.metrics[metric] for run in runs])


def _at_the_end(runs: list[Runs], metric: str = DOT_PRODUCT) -> NDArray[np.float64]:
    """The last value of each seed: (seeds,)."""
    return np.array([carried(run.metrics[metric][0])[-1] for run in runs])


def carried(curve: NDArray[np.float64]) -> NDArray[np.float64]:
    """A member that diverged is frozen, so it stays at what was last measured of it."""
    known = np.maximum.accumulate(np.where(np.isfinite(curve), np.arange(len(curve)), 0))
    return curve[known]


def _median(values: NDArray[np.float64]) -> float:
    """Over seeds: one that diverges by orders of magnitude would be all that a mean tells of."""
    return float(np.median(values))


def _words(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def _list(values: NDArray[np.float64]) -> list[float]:
    return [float(value) for value in values]
