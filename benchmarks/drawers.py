"""How fast the drawers are, and whether they stay sane: random steps with pictures, in all four tasks.

    .venv/bin/python benchmarks/drawers.py              # 10,000 steps; about a minute on one core

Prints steps per second of processor time, and the worst that happened: the fastest joint, how far a drawer left its
rails, the deepest contact, MuJoCo's warnings.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from dr3.envs.drawers import DrawersEnv
from dr3.envs.drawers_tasks import DRAWERS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000, help="in all tasks together")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    random = np.random.default_rng(arguments.seed)
    made, seconds, fastest, deepest, warnings = 0, 0.0, 0.0, 0.0, 0
    least, most = 1.0, 0.0
    for name, task in DRAWERS.items():
        world = DrawersEnv(name)
        for number in range(-(-arguments.steps // (len(DRAWERS) * task.steps))):
            world.reset(seed=arguments.seed + number)
            data = world.scene.data
            for wild in random.uniform(-1, 1, (task.steps, 8)):
                start = time.process_time()
                info = world.step(wild)[-1]
                seconds += time.process_time() - start
                fastest = max(fastest, float(np.abs(data.qvel).max()))
                deepest = max(deepest, *(-contact.dist for contact in data.contact), 0.0)
                least, most = min(least, info["top"], info["bottom"]), max(most, info["top"], info["bottom"])
            made, warnings = made + task.steps, warnings + int(data.warning.number.sum())
        world.close()
    print(f"{made:,} steps, {made / seconds:.0f} a second of one core's time, each with its picture")
    print(f"fastest joint {fastest:.1f} m/s or rad/s; drawers within [{least:.3f}, {most:.3f}] of their travel; "
          f"deepest contact {1000 * deepest:.1f} mm; {warnings} warnings of MuJoCo")  # fmt: skip


if __name__ == "__main__":
    main()
