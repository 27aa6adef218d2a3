"""Compute what rliable says about stored inputs. Run once, in an environment of its own.

python benchmarks/statistics/reference.py > tests/stats/reference/rliable.json
"""

from __future__ import annotations

import json
from importlib.metadata import version

import numpy as np
from rliable import library, metrics

REPLICATES = 50_000
PAIR_REPLICATES = 20_000
THRESHOLDS = [-0.5, 0.0, 0.5, 1.0, 2.0]

# Rounded to one digit so that ties occur: they are where implementations of Mann-Whitney differ.
inputs = np.random.default_rng(20220425)
first = np.round(inputs.normal(0.8, 0.6, size=(5, 17)) + inputs.normal(0.0, 0.5, size=17), 1)
second = np.round(inputs.normal(0.4, 0.6, size=(4, 17)) + inputs.normal(0.0, 0.5, size=17), 1)

statistics = {
    "iqm": metrics.aggregate_iqm,
    "median": metrics.aggregate_median,
    "mean": metrics.aggregate_mean,
    "optimality_gap": metrics.aggregate_optimality_gap,
}

np.random.seed(0)  # noqa: NPY002 - rliable ignores its random_state argument and draws from the global generator
points, limits = library.get_interval_estimates(
    {"first": first, "second": second},
    lambda scores: np.array([statistic(scores) for statistic in statistics.values()]),
    reps=REPLICATES,
)
pair_points, pair_limits = library.get_interval_estimates(
    {"first,second": (first, second)},
    lambda x, y: np.array([metrics.probability_of_improvement(x, y)]),
    reps=PAIR_REPLICATES,
)
profiles, profile_limits = library.create_performance_profile({"first": first}, THRESHOLDS, reps=REPLICATES)

result = {
    "versions": {name: version(name) for name in ("rliable", "arch", "numpy", "scipy", "pandas")},
    "replicates": REPLICATES,
    "pair_replicates": PAIR_REPLICATES,
    "first": first.tolist(),
    "second": second.tolist(),
    "statistics": {
        algorithm: {
            name: [float(points[algorithm][k]), float(limits[algorithm][0, k]), float(limits[algorithm][1, k])]
            for k, name in enumerate(statistics)
        }
        for algorithm in ("first", "second")
    },
    "probability_of_improvement": [
        float(pair_points["first,second"][0]),
        float(pair_limits["first,second"][0, 0]),
        float(pair_limits["first,second"][1, 0]),
    ],
    "profile": {
        "thresholds": THRESHOLDS,
        "estimate": [float(value) for value in profiles["first"]],
        "lower": [float(value) for value in profile_limits["first"][0]],
        "upper": [float(value) for value in profile_limits["first"][1]],
    },
}
print(json.dumps(result, indent=1))
