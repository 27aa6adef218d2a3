"""The gridworld runs on which rules and signs are measured: python docs/results/selection_runs.py FOLDER

As declared in selection.md: four worlds, data of seeds 200 to 204, DQN and CQL each with and without DR3, and SARSA and
supervised regression, which nothing should be said against. A rerun goes on with what is missing.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import dr3

WORLDS = ("grid16smoothobs", "grid16randomobs", "grid16smoothsparse", "grid16randomsparse")
SEEDS = range(200, 205)
SETTINGS = {"discount": 0.99, "hidden": (128, 128), "learning_rate": 1e-3, "batch_size": 128}
METHODS = {
    "dqn": (dr3.DQN(**SETTINGS, target_period=50), [None, dr3.DR3(0.03)]),
    "cql": (dr3.CQL(**SETTINGS, target_period=50, alpha=1.0), [None, dr3.DR3(0.03)]),
    "sarsa": (dr3.SARSA(**SETTINGS, target_period=50), None),
    "supervised": (dr3.Supervised(**SETTINGS), None),
}


def main(folder: str) -> None:
    began = time.process_time()
    for seed in SEEDS:
        for world in WORLDS:
            data = dr3.load(f"{world}:seed={seed}", discount=0.99)
            for name, (method, regularizer) in METHODS.items():
                out = Path(folder) / f"{name}-{world}-{seed}"
                dr3.train(data, method, regularizer=regularizer, steps=10_000, out=out, progress=False)
                print(f"{out.name}: {time.process_time() - began:.0f} CPU seconds so far", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
