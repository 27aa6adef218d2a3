"""How often 95 % intervals hold the truth: python docs/results/coverage.py [--sets 200] [--networks] [--propensities]

On gridworlds, where the value of a policy is known exactly. Every data set is drawn anew from the logged policy, which
takes the best action with probability 0.7, and three policies are evaluated on it, which do so with probability 0.72
("close"), 0.85 ("near") and 1 ("greedy"). Importance sampling knows nothing of what comes after the 50 steps of an
episode, so `is` and `wis` are held against the value of 50 steps; the others against that of all.
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import numpy as np

from dr3.data.gridworld import sample_gridworld
from dr3.envs import expected_return, gridworld, policy_values
from dr3.envs.gridworld_policies import behavior_policy
from dr3.ope import FQE, evaluate
from dr3.ope.direct import StateTable


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--world", default="grid16smoothobs")
    parser.add_argument("--discounts", type=float, nargs="+", default=[0.95, 0.99])
    parser.add_argument("--episodes", type=int, nargs="+", default=[20, 80])
    parser.add_argument("--networks", action="store_true", help="networks in the place of the direct solution")
    parser.add_argument("--propensities", action="store_true", help="β as it was, not as the log's frequencies tell")
    options = parser.parse_args()
    if options.networks:
        StateTable.of = classmethod(lambda cls, data: None)  # ty: ignore[invalid-assignment]
    fqe = FQE(bootstraps=50, networks=5, hidden=(32, 32), updates_per_copy=10)
    world = gridworld(options.world)
    print(
        "| γ | episodes | policy | overlap | effective episodes | fqe | dr | wis | is | logged |\n" + "|---" * 10 + "|"
    )
    for discount in options.discounts:
        best = behavior_policy(world, "optimal", discount=discount)
        shares = {"close": 0.72, "near": 0.85, "greedy": 1.0}
        policies = {name: share * best + (1 - share) / 4 * (1 - best) for name, share in shares.items()}
        logged = behavior_policy(world, "mixed", discount=discount)
        truth = {name: value_of(world, policy, discount) for name, policy in {**policies, "logged": logged}.items()}
        for episodes in options.episodes:
            began = time.process_time()
            held: dict[tuple[str, str], list[float]] = {}
            for seed in range(options.sets):
                size = episodes * world.horizon
                data = sample_gridworld(world, size=size, seed=10_000 + seed, discount=discount)
                if options.propensities:
                    data = dataclasses.replace(data, propensities=propensities(world, logged, data))
                found = evaluate({n: asked(world, p) for n, p in policies.items()}, data, discount=discount, fqe=fqe)
                told = [(one.name, kind, of) for one in found.policies for kind, of in one.estimates.items()]
                for name, kind, of in [*told, ("logged", "logged", found.logged)]:
                    exact = truth[name][1 if kind in ("is", "wis") else 0]
                    held.setdefault((name, kind), []).append(of.lower <= exact <= of.upper if of.has_limits else np.nan)
                for one in found.policies:
                    held.setdefault((one.name, "overlap"), []).append(one.overlap)
                    held.setdefault((one.name, "size"), []).append(one.effective_episodes)
            for name in policies:
                cells = [share(held.get((name, kind), [])) for kind in ("fqe", "dr", "wis", "is")]
                cells.append(share(held["logged", "logged"]))
                trust = f"{np.mean(held[name, 'overlap']):.2f} | {np.mean(held[name, 'size']):.1f}"
                print(f"| {discount} | {episodes} | {name} | {trust} | {' | '.join(cells)} |", flush=True)
            print(f"({time.process_time() - began:.0f} CPU seconds)", flush=True)


def asked(world, policy):
    """As a function of observations."""
    number = {row.tobytes(): state for state, row in enumerate(world.observations)}
    return lambda seen: policy[[number[row.tobytes()] for row in seen]]


def propensities(world, logged, data):
    """The probability with which the logged policy took what it took."""
    return asked(world, logged)(data.observations)[np.arange(len(data)), data.actions].astype(np.float32)


def share(held: list[float]) -> str:
    """How often the truth was held where there was an interval, and of how many data sets that is."""
    with_limits = [one for one in held if one == one]
    return f"{np.mean(with_limits):.0%} of {len(with_limits)}" if with_limits else "–"


def value_of(world, policy, discount: float) -> tuple[float, float]:
    """The value from the start for ever, and of one episode's steps."""
    forever = policy_values(world.transitions, world.rewards, policy, discount)[world.start] @ policy[world.start]
    steps = expected_return(world.transitions, world.rewards, policy, world.start, world.horizon, discount=discount)
    return float(forever), steps


if __name__ == "__main__":
    main()
