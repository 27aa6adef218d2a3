"""A log of CartPole by a noisy heuristic: python docs/results/cartpole_log.py cartpole.npz

It pushes towards where the pole leans (angle plus angular velocity) and, in four of ten steps, anywhere. Episodes are
acted until there are at least 51,781 steps, as many as the log that the user's story of selection.md began with.
"""

from __future__ import annotations

import sys

import gymnasium
import numpy as np

from dr3.data import assemble, write_npz

STEPS, NOISE = 51_781, 0.4


def main(path: str) -> None:
    env, random = gymnasium.make("CartPole-v1"), np.random.default_rng(0)
    rows: dict[str, list] = {
        name: [] for name in ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts")
    }
    episode = 0
    while len(rows["rewards"]) < STEPS:
        state, _ = env.reset(seed=episode)
        over = False
        while not over:
            leans = int(state[2] + state[3] > 0)
            action = int(random.integers(2)) if random.random() < NOISE else leans
            following, reward, terminal, cut, _ = env.step(action)
            for name, value in zip(rows, (state, action, reward, following, terminal, cut), strict=True):
                rows[name].append(value)
            state, over = following, terminal or cut
        episode += 1
    columns = {name: np.array(values) for name, values in rows.items()}
    table = assemble(columns, source=path, name="cartpole-noisy")
    write_npz(path, table)
    print(f"{len(table)} steps, {episode} episodes, mean return {len(table) / episode:.0f}")


if __name__ == "__main__":
    main(sys.argv[1])
