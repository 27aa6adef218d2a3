"""The questions of run.py put to rliable; prints {question: seconds} as JSON. Runs in rliable's own environment."""

from __future__ import annotations

import json
import time

import numpy as np
from rliable import library, metrics

RUNS, TASKS = 5, 17

rng = np.random.default_rng(0)
first, second = rng.normal(1.0, 1.0, (RUNS, TASKS)), rng.normal(0.7, 1.0, (RUNS, TASKS))


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def all_three(scores):
    return np.array([metrics.aggregate_iqm(scores), metrics.aggregate_median(scores), metrics.aggregate_mean(scores)])


def only_iqm(scores):
    return np.array([metrics.aggregate_iqm(scores)])


def improvement(x, y):
    return np.array([metrics.probability_of_improvement(x, y)])


estimates = library.get_interval_estimates
print(
    json.dumps(
        {
            "IQM, 50,000 replicates": seconds(lambda: estimates({"a": first}, only_iqm, reps=50_000)),
            "IQM, median and mean, 50,000 replicates": seconds(lambda: estimates({"a": first}, all_three, reps=50_000)),
            "probability of improvement, 2,000 replicates": seconds(
                lambda: estimates({"a,b": (first, second)}, improvement, reps=2_000)
            ),
            "profile at 41 thresholds, 2,000 replicates": seconds(
                lambda: library.create_performance_profile({"a": first}, np.linspace(-1.0, 3.0, 41), reps=2_000)
            ),
        }
    )
)
