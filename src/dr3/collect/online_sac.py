"""A SAC that learns by acting in a Gymnasium world: the replay and the updates, compiled, beside a world that is not.

The world is stepped on the host with the policy of numpy arrays (a compiled call for one observation costs more than
the arithmetic in it); after every few steps as many updates run in one compiled call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from dr3.collect.cuts import CUTS, Snapshots, cut_table
from dr3.collect.gymnasium_world import GymnasiumWorld, Steps
from dr3.collect.host_policy import HostPolicy, write_policy
from dr3.collect.loop import OnlineAgent, check_ending, check_schedule, check_target, collect, online_batch
from dr3.data import Transitions, write
from dr3.data.batch import Batch
from dr3.data.convert import ENDINGS
from dr3.errors import UserError
from dr3.methods import SAC, Spec
from dr3.methods.continuous import Learner
from dr3.training.loop import begin, draw_rows, stream

SNAPSHOTS = 20  # policies kept on the way, of which the cuts take theirs
RECENT = 10  # episodes whose mean return says how good the agent is


@dataclass(frozen=True)
class SACSchedule:
    """How the agent explores, and how often it learns."""

    warmup: int = 5_000
    """Steps of random actions before the first update."""

    steps_per_update: int = 1
    """Steps for each gradient step after that."""

    block: int = 50
    """Steps that are made with one policy before the updates that are due for them."""

    def check(self) -> None:
        check_schedule(self, "warmup", "steps_per_update", "block")

    def updates_after(self, steps: int) -> int:
        """Gradient steps that are due once so many steps have been made."""
        return max(0, steps - self.warmup) // self.steps_per_update


@partial(jax.jit, donate_argnames=("learner", "replay"))
def learn(
    method: SAC, seed: Array, learner: Learner, replay: Steps, block: Steps, made: Array, count: Array, stop: Array
) -> tuple[Learner, Steps]:
    """Add the first `count` rows of `block` to the `made` ones of the replay, then update until there were `stop`.

    What a block holds beyond `count` is written too, and is what the next block writes over. All chance is a function
    of (seed, number of the update).
    """
    replay = jax.tree.map(lambda all_rows, new: lax.dynamic_update_slice_in_dim(all_rows, new, made, 0), replay, block)

    def update(learner: Learner) -> Learner:
        number = learner.updates
        batch = _take(replay, draw_rows(seed, number, method.batch_size, made + count))
        learner, _ = method.update(learner, batch, jax.random.fold_in(stream(seed, 2), number), None)
        due = learner.updates % method.target_period == 0
        return lax.cond(due, method.synchronise, lambda same: same, learner)

    return lax.while_loop(lambda learner: learner.updates < stop, update, learner), replay


def _take(replay: Steps, rows: Array) -> Batch:
    steps = jax.tree.map(lambda column: column[rows], replay)
    return online_batch(steps.observations, steps.actions, steps.rewards, steps.next_observations, steps.terminals)


class SACState(NamedTuple):
    """Where the agent stands, between two episodes."""

    learner: Any
    replay: Steps  # on the device
    made: NDArray[np.int64]  # () steps
    episode: NDArray[np.int64]  # () episodes
    returns: NDArray[np.float64]  # (RECENT,) of the last episodes, the latest last; NaN before there were so many
    snapshots: Snapshots


def collect_sac(
    env: str,
    *,
    steps: int,
    out: str | Path,
    seed: int = 0,
    method: SAC = SAC(),  # noqa: B008 (frozen)
    schedule: SACSchedule = SACSchedule(),  # noqa: B008 (frozen)
    cuts: Sequence[str] = (),
    cut_steps: int = 100_000,
    policy: str | Path | None = None,
    progress: bool = True,
) -> Transitions:
    """Train a SAC online for `steps` steps in a Gymnasium world and write its whole replay ("full-replay") to `out`.

    `out` is an .npz file, or an .hdf5 file in D4RL's layout. `cuts` of D4RL's kind are written beside it in the same
    format, as OUT-medium.hdf5 and so on: see `dr3.collect.cuts`.

    What was seen so far is kept beside `out` while it runs, as it was at the end of an episode. Ctrl-C or SIGTERM waits
    for one, saves and stops; the same call goes on from there, and a run that was stopped or killed ends with the same
    files as one that was not. A file that is there already is not written over.

    Args:
        env: The name of the world.
        steps: How many steps to take in it, of all copies together.
        out: The file (or folder) to write.
        seed: Everything random follows from it.
        method: The agent's hyperparameters.
        schedule: How it explores and when it learns.
        cuts: Which other data sets of D4RL's kinds to write beside it.
        cut_steps: How many steps each of those has.
        policy: A file (.npz) for the weights of the last policy; None keeps none.
        progress: Show how far it is, on stderr.
    """
    learning: Any = {"steps": steps, "out": out, "seed": seed, "method": method, "schedule": schedule}
    kept = None if policy is None else Path(policy)
    agent = SACAgent(env, cuts=cuts, cut_steps=cut_steps, kept=kept, show=progress, **learning)
    return collect(agent, progress=progress)


class SACAgent(OnlineAgent):
    """Acts on the host to the end of an episode, and learns after every block of steps."""

    state: SACState

    def __init__(
        self,
        env: str,
        *,
        seed: int,
        cuts: Sequence[str],
        cut_steps: int,
        kept: Path | None,
        show: bool,
        **settings: Any,
    ) -> None:
        if cut_steps < 1:
            raise UserError(f"cut_steps must be at least 1, not {cut_steps}.")
        for cut in cuts:
            if cut not in CUTS:
                raise UserError(f"There is no cut {cut!r}; there are {', '.join(CUTS)}.")
        super().__init__("sac", GymnasiumWorld(env, seed), seed=seed, endings=tuple(ENDINGS), **settings)
        self.cuts = {cut: self.path.with_name(f"{self.path.stem}-{cut}{self.path.suffix}") for cut in cuts}
        self.cut_steps, self.show, self.files = cut_steps, show, [self.path, *self.cuts.values()]
        self.kept = kept
        if kept is not None:
            check_ending(kept, (".npz",))
            check_target(kept)
            self.files.append(kept)
        self.settings["cuts"] = dict.fromkeys(cuts, cut_steps)
        self.block = Steps.empty(self.schedule.block, self.world.size, self.world.actions.size)

    def start(self) -> SACState:
        world, rows = self.world, self.steps + self.schedule.block
        learner = begin(self.method, self.number, Spec((world.size,), world.actions)).learner
        return SACState(
            learner=jax.tree.map(jnp.array, learner),  # copies: critics and target are one array at first
            replay=jax.tree.map(jnp.asarray, Steps.empty(rows, world.size, world.actions.size)),
            made=np.zeros((), np.int64),
            episode=np.zeros((), np.int64),
            returns=np.full(RECENT, np.nan),
            snapshots=Snapshots.empty(SNAPSHOTS, learner.model.policy),
        )

    def made(self) -> int:
        return int(self.state.made)

    def advance(self) -> int:
        """Act and learn to the end of an episode, or of the steps."""
        now, world, schedule, steps = self.state, self.world, self.schedule, self.steps
        learner, replay, snapshots, made = now.learner, now.replay, now.snapshots, int(now.made)
        space, total, over = world.actions, 0.0, False
        while made < steps and not over:
            random = made < schedule.warmup
            policy = HostPolicy(None if random else learner.model.policy, space.size, space.low, space.high)
            limit = min(schedule.block, (schedule.warmup if random else steps) - made, steps - made)
            count, over = world.act(policy, self.block, episode=int(now.episode), step=made, limit=limit)
            total += float(self.block.rewards[:count].sum())
            stop = schedule.updates_after(made + count)
            # Copies: the call comes back before its work is done, and may read the arrays it was given until then.
            rows, numbers = jax.tree.map(np.copy, self.block), (jnp.int32(number) for number in (made, count, stop))
            learner, replay = learn(self.method, self.number, learner, replay, rows, *numbers)
            made += count
            snapshots = snapshots.with_due(made, steps, learner.model.policy, now.returns)
        self.state = SACState(
            learner=learner,
            replay=replay,
            made=np.asarray(made),
            episode=now.episode + 1,
            returns=np.append(now.returns[1:], total),
            snapshots=snapshots,
        )
        return made

    def note(self) -> str:
        known = self.state.returns[~np.isnan(self.state.returns)]
        return f", recent mean return {known.mean():.0f}" if len(known) else ""

    def write(self) -> Transitions:
        now, world = self.state, self.world
        columns = {column: np.asarray(rows)[: self.steps] for column, rows in now.replay._asdict().items()}
        table = world.table(columns, name=f"{world.name.lower()}-sac-{self.seed}", discount=self.discount)
        for cut, file in self.cuts.items():
            if not file.exists():
                policy = now.learner.model.policy
                write(file, cut_table(cut, now.snapshots, policy, table, world, self.cut_steps, self.show))
        space = world.actions
        if self.kept is not None and not self.kept.exists():
            write_policy(self.kept, HostPolicy(now.learner.model.policy, space.size, space.low, space.high))
        write(self.path, table)
        return table

    def close(self) -> None:
        self.world.close()
