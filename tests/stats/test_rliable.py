"""Agreement with rliable on the same inputs; how its values were made is in reference/README.md."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pytest

from dr3.stats import bootstrap, improvement, interval, iqm, mean, median, optimality_gap, performance_profile

REFERENCE = json.loads((Path(__file__).parent / "reference" / "rliable.json").read_text())
SCORES = {name: np.array(REFERENCE[name]) for name in ("first", "second")}
STATISTICS = {
    "iqm": iqm,
    "median": median,
    "mean": mean,
    "optimality_gap": functools.partial(optimality_gap, threshold=1.0),
}


def monte_carlo_error(replicates: np.ndarray, count: int) -> float:
    """The standard error of a 2.5 % quantile of `count` replicates: sqrt(p (1 - p) / count) / density.

    The density is that of a normal with the replicates' spread, at its 2.5 % point: 0.0584 / standard deviation.
    """
    return float(np.sqrt(0.025 * 0.975 / count) / 0.0584 * replicates.std())


@pytest.mark.parametrize("algorithm", ["first", "second"])
@pytest.mark.parametrize("name", list(STATISTICS))
def test_aggregates(algorithm: str, name: str) -> None:
    estimate, lower, upper = REFERENCE["statistics"][algorithm][name]
    ours = interval(SCORES[algorithm], STATISTICS[name], np.random.default_rng(1))
    replicates = bootstrap(SCORES[algorithm], STATISTICS[name], np.random.default_rng(2))
    # Both sides are random: sqrt(2) standard errors; five of those.
    slack = 5 * np.sqrt(2) * monte_carlo_error(replicates, REFERENCE["replicates"])
    assert ours.estimate == pytest.approx(estimate, abs=1e-12)
    assert ours.lower == pytest.approx(lower, abs=slack)
    assert ours.upper == pytest.approx(upper, abs=slack)


def test_probability_of_improvement() -> None:
    estimate, lower, upper = REFERENCE["probability_of_improvement"]
    ours = improvement(SCORES["first"], SCORES["second"], np.random.default_rng(1)).probability
    spread = np.array([(upper - lower) / (2 * 1.96), -(upper - lower) / (2 * 1.96)])
    slack = 5 * np.sqrt(2) * monte_carlo_error(spread, REFERENCE["pair_replicates"])
    assert ours.estimate == pytest.approx(estimate, abs=1e-12)
    assert ours.lower == pytest.approx(lower, abs=slack)
    assert ours.upper == pytest.approx(upper, abs=slack)


def test_profile() -> None:
    reference = REFERENCE["profile"]
    ours = performance_profile(
        SCORES["first"], reference["thresholds"], np.random.default_rng(1), replicates=REFERENCE["replicates"]
    )
    np.testing.assert_allclose(ours.estimate, reference["estimate"])
    # Shares move in steps of one run in 85: the limits may differ by one step at most.
    step = 1 / SCORES["first"].size + 1e-12
    np.testing.assert_allclose(ours.lower, reference["lower"], atol=step)
    np.testing.assert_allclose(ours.upper, reference["upper"], atol=step)
