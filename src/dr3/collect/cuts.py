"""D4RL's kinds of data, cut from one online run.

- random: steps of uniformly random actions.
- medium: steps of the policy at about a third of the way from the random to the final return.
- expert: steps of the final policy.
- medium-replay: the replay up to the medium policy.
- medium-expert: medium and expert, half each.

Policies act with their noise, as they did when they learned.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from dr3.collect.gymnasium_world import GymnasiumWorld, Steps
from dr3.collect.host_policy import HostPolicy
from dr3.data.transitions import Transitions
from dr3.networks import GaussianPolicy
from dr3.progress import Reporter, reporter

CUTS = ("random", "medium", "expert", "medium-replay", "medium-expert")
MEDIUM = 1 / 3
FIRST_EPISODE = {"random": 10_000_000, "medium": 20_000_000, "expert": 30_000_000}  # none the agent learned in


class Snapshots(NamedTuple):
    """The agent's policies at even distances of its run, and how good it was then."""

    weights: NDArray[np.float32]  # (snapshots, parameters)
    steps: NDArray[np.int64]  # (snapshots,) 0 where none was taken yet
    returns: NDArray[np.float64]  # (snapshots,) mean of the episodes before

    @classmethod
    def empty(cls, count: int, policy: GaussianPolicy) -> Snapshots:
        parameters = sum(leaf.size for leaf in jax.tree.leaves(policy))
        return cls(np.zeros((count, parameters), np.float32), np.zeros(count, np.int64), np.full(count, np.nan))

    def with_due(self, made: int, steps: int, policy: GaussianPolicy, returns: NDArray[np.float64]) -> Snapshots:
        """With the policy after `made` of `steps` steps, where the next distance has been reached."""
        place = made * len(self.steps) // steps - 1
        if place < 0 or self.steps[place]:
            return self
        weights, when, worth = self.weights.copy(), self.steps.copy(), self.returns.copy()
        weights[place], when[place] = np.asarray(ravel_pytree(policy)[0]), made
        known = returns[~np.isnan(returns)]
        worth[place] = known.mean() if len(known) else np.nan
        return Snapshots(weights, when, worth)

    def medium(self) -> int:
        """The first that came a third of the way from the first return to the last."""
        taken = np.flatnonzero((self.steps > 0) & ~np.isnan(self.returns))
        if not len(taken):  # no episode has ended: there is nothing to tell the policies apart by
            return len(self.steps) - 1
        returns = self.returns[taken]
        level = returns[0] + MEDIUM * (returns[-1] - returns[0])
        return int(taken[np.argmax(returns >= level)])

    def policy(self, place: int, like: GaussianPolicy) -> GaussianPolicy:
        return ravel_pytree(like)[1](self.weights[place])


def cut_table(
    cut: str,
    snapshots: Snapshots,
    final: GaussianPolicy,
    replay: Transitions,
    world: GymnasiumWorld,
    steps: int,
    progress: bool = False,
) -> Transitions:
    """One of `CUTS` with `steps` steps; medium-replay has those that it has."""
    name, discount = f"{world.name.lower()}-{cut}", replay.returns_discount
    if cut == "medium-replay":
        columns = {column: getattr(replay, column)[: snapshots.steps[snapshots.medium()]] for column in Steps._fields}
        return world.table(columns, name=name, discount=discount)
    parts = ("medium", "expert") if cut == "medium-expert" else (cut,)
    policies: dict[str, Any] = {"random": None, "expert": final}
    if "medium" in parts:
        policies["medium"] = snapshots.policy(snapshots.medium(), final)
    rolled = []
    for part in parts:
        with reporter(f"{name}: {part}", 0, steps // len(parts), show=progress, unit="steps") as report:
            rolled.append(rollouts(policies[part], world, steps // len(parts), FIRST_EPISODE[part], report))
    columns = {column: np.concatenate([part[column] for part in rolled]) for column in Steps._fields}
    return world.table(columns, name=name, discount=discount)


def rollouts(
    policy: GaussianPolicy | None, world: GymnasiumWorld, steps: int, episode: int, report: Reporter
) -> dict[str, NDArray[Any]]:
    """So many steps of a policy, from the start of the episode with that number on."""
    space = world.actions
    acting = HostPolicy(policy, space.size, space.low, space.high)
    rows, made = Steps.empty(steps, world.size, space.size), 0
    world.observation = None
    began = time.monotonic()
    while made < steps:
        rest = Steps(*(column[made:] for column in rows))
        count, _ = world.act(acting, rest, episode=episode, step=episode + made, limit=steps - made)
        made, episode = made + count, episode + 1
        report.at(made, per_second=made / max(time.monotonic() - began, 1e-9), note="")
    world.observation = None
    rows.timeouts[-1] = not rows.terminals[-1]  # cut here, whatever follows it in a table
    return rows._asdict()
