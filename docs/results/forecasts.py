"""What became of SEEM's forecasts: python docs/results/forecasts.py [--every N] RUN…

For each member at the first checkpoint at which K, over all parameters, has an eigenvalue in the unstable half-plane
while Q is still within its bounds: after how many updates Q leaves them by the forecast, and after how many it was
found outside. What is measured is kept in the run folders.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import dr3
from dr3.diagnostics.checks import Thresholds, divergence, unstable_spectrum
from dr3.diagnostics.health import label_of
from dr3.reports.checkup import Checkup


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=1, help="look at every so many checkpoints alone")
    options = parser.parse_args()
    print("| run | member | forecast at step | updates, by the forecast | updates, as it was |\n|---|---|---|---|---|")
    told: list[tuple[float, float]] = []  # forecast, and what came of it: infinite where Q stayed
    without = [0, 0]  # members without a forecast, and how many of them left their bounds
    for folder in options.runs:
        runs, checkup = dr3.open(folder), Checkup()
        for step in [step for step in runs.checkpoints if step > 0][:: options.every]:
            checkup.measure(runs, step)
        health = checkup.health(runs)
        assert health is not None
        measured, limit = health.measurements, Thresholds()
        for number in range(len(runs)):
            of = measured.of(number)
            unstable = unstable_spectrum(measured.steps, of, limit)
            outside = divergence(measured.steps, of, limit).holds
            first = next((t for t in np.flatnonzero(unstable.holds & ~outside)), None)
            if first is None or outside[:first].any():
                without[0] += 1
                without[1] += bool(outside.any())
                continue
            left = np.flatnonzero(outside[first:])
            updates = measured.steps[first + left[0]] - measured.steps[first] if len(left) else np.inf
            forecast = unstable.evidence(first)["forecast"]
            told.append((forecast, float(updates)))
            stayed = f"not in {measured.steps[-1] - measured.steps[first]:,}"
            was = f"{updates:,.0f}" if len(left) else stayed
            print(f"| {folder.name} | {label_of(runs, number)} | {measured.steps[first]:,} | {forecast:,.0f} | {was} |")
    left = [(forecast, was) for forecast, was in told if np.isfinite(was)]
    print(f"\n{len(told)} members had a forecast, {len(left)} of which left their bounds;", end=" ")
    print(f"{without[0]} had none, {without[1]} of which did.")
    if left:
        ratios = np.array([was / forecast for forecast, was in left])
        low, middle, high = np.quantile(ratios, [0, 0.5, 1])
        print(
            f"Of those that left, it took {middle:.1f} times as long as the forecast (median; {low:.1f} to {high:.1f})."
        )


if __name__ == "__main__":
    main()
