"""Bootstrap intervals with dr3.stats and with rliable, on the same scores, in one run.

    .venv/bin/python benchmarks/statistics/run.py --peer .venv-rliable/bin/python

The peer runs in its own environment (requirements.txt beside this file), as a process that prints its seconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dr3.stats import improvement, intervals, iqm, mean, median, performance_profile

RUNS, TASKS = 5, 17
THRESHOLDS = np.linspace(-1.0, 3.0, 41)


def fastest(work: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of a few calls: the one the machine disturbed least."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def ours() -> dict[str, float]:
    """The same questions as in peer.py, seconds each."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(1.0, 1.0, (RUNS, TASKS)), rng.normal(0.7, 1.0, (RUNS, TASKS))
    three = {"iqm": iqm, "median": median, "mean": mean}
    return {
        "IQM, 50,000 replicates": fastest(lambda: intervals({"a": first}, {"iqm": iqm}, rng)),
        "IQM, median and mean, 50,000 replicates": fastest(lambda: intervals({"a": first}, three, rng)),
        "probability of improvement, 2,000 replicates": fastest(
            lambda: improvement(first, second, rng, replicates=2_000)
        ),
        "profile at 41 thresholds, 2,000 replicates": fastest(lambda: performance_profile(first, THRESHOLDS, rng)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=".venv-rliable/bin/python", help="a Python that has rliable")
    peer = [parser.parse_args().peer, str(Path(__file__).with_name("peer.py"))]
    theirs = json.loads(subprocess.run(peer, check=True, capture_output=True, text=True).stdout)
    print(f"{RUNS} runs x {TASKS} tasks; seconds, one process each\n")
    print("| interval of | dr3 | rliable | ratio |\n|---|---|---|---|")
    for name, seconds in ours().items():
        print(f"| {name} | {seconds:.3f} | {theirs[name]:.2f} | {theirs[name] / seconds:.0f}x |")


if __name__ == "__main__":
    main()
