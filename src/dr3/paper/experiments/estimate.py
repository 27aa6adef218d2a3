"""How long an experiment would take: a few compiled updates of each kind, measured here and now."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dr3.data import ContinuousActions, DiscreteActions
from dr3.data.batch import Batch
from dr3.envs import GRIDWORLDS, gridworld, make_world, minatar
from dr3.methods import Method, Spec
from dr3.notation import split
from dr3.regularizers import Regularizer
from dr3.sweeps import Job, Preparation, Task
from dr3.training.loop import advance, begin

ATARI = Spec((84, 84, 4), DiscreteActions(18))
WIDOW = Spec((48, 48, 3), ContinuousActions(8))
ROWS = 64  # of made-up data
LATE = 1 << 30  # updates: past what a run begins with, such as the cloning of BRAC's behaviour policy, which is cheaper
SECONDS = 0.5  # of measuring, for each kind


@dataclass(frozen=True)
class Kind:
    """Updates that cost the same: a method and its network, a regularizer, and the shapes they see."""

    method: Method
    regularizer: Regularizer | None
    spec: Spec


@dataclass(frozen=True)
class Cost:
    """How many updates of a kind there are, and how many a second."""

    kind: Kind
    updates: int
    per_second: float

    @property
    def hours(self) -> float:
        return self.updates / self.per_second / 3600


def estimate(jobs: Sequence[Job], reported: Callable[[int, int], None] = lambda done, of: None) -> list[Cost]:
    """The cost of all updates of `jobs`; evaluations and the making of data are not in it. `reported(done, of)`."""
    made = {job.makes: job for job in jobs if isinstance(job, Preparation)}
    updates: dict[Kind, int] = {}
    shapes: dict[str, Spec] = {}
    for task in jobs:
        if isinstance(task, Task):
            world = _world(task, made)
            if world not in shapes:
                shapes[world] = spec_of(world)
            for regularizer in task.regularizers:
                kind = Kind(task.method, regularizer, shapes[world])
                updates[kind] = updates.get(kind, 0) + task.steps * len(task.seeds)
    costs = []
    for done, (kind, count) in enumerate(updates.items(), start=1):
        costs.append(Cost(kind, count, speed(kind)))
        reported(done, len(updates))
    return costs


def speed(kind: Kind) -> float:
    """Updates per second on made-up data, in this process."""
    method, regularizer, seed = jax.tree.map(jnp.asarray, (kind.method, kind.regularizer, np.uint32(0)))
    table = made_up(kind.spec)
    progress, stop = begin(method, seed, kind.spec), 1
    if hasattr(progress.learner, "updates"):
        progress = progress._replace(learner=progress.learner._replace(updates=jnp.int32(LATE)))
    progress = jax.block_until_ready(advance(method, regularizer, seed, progress, table, jnp.int32(stop)))  # compiles
    chunk = 4
    while True:
        began = time.process_time()  # of this process: a core that is busy elsewhere does not count
        stop += chunk
        progress = jax.block_until_ready(advance(method, regularizer, seed, progress, table, jnp.int32(stop)))
        spent = time.process_time() - began
        if spent > SECONDS:
            return chunk / spent
        chunk *= 4


def made_up(spec: Spec) -> Batch:
    """A table of noise in the shapes of `spec`."""
    random = np.random.default_rng(0)
    space: Any = spec.action_space
    image = len(spec.observation_shape) == 3

    def observations() -> jax.Array:
        shape = (ROWS, *spec.observation_shape)
        return jnp.asarray(
            random.integers(0, 255, shape, np.uint8) if image else random.normal(size=shape),
            None if image else jnp.float32,
        )

    def actions() -> jax.Array:
        if isinstance(space, DiscreteActions):
            return jnp.asarray(random.integers(space.count, size=ROWS), jnp.int32)
        return jnp.asarray(random.uniform(-1, 1, (ROWS, space.size)), jnp.float32)

    behavior = jnp.full((ROWS, space.count), 1 / space.count) if isinstance(space, DiscreteActions) else None
    numbers = jnp.asarray(random.uniform(size=ROWS), jnp.float32)
    return Batch(observations(), actions(), numbers, observations(), jnp.zeros(ROWS), actions(), numbers, behavior)


def spec_of(world: str) -> Spec:
    """The shapes of a world's data."""
    if world in GRIDWORLDS:
        found = gridworld(world)
        return Spec(found.observations.shape[1:], DiscreteActions(found.transitions.shape[1]))
    if world.startswith("minatar/"):
        game = minatar(world)
        return Spec(game.observation_shape, DiscreteActions(game.actions))
    if world == "atari":
        return ATARI
    if world.startswith("Widow250"):  # COG's, which need not be here to be estimated
        return WIDOW
    made: Any = make_world(world)
    spec = Spec(made.observation_space.shape, ContinuousActions(made.action_space.shape[0], -1.0, 1.0))
    made.close()
    return spec


def _world(task: Task, made: Mapping[str, Preparation]) -> str:
    """What a task's data come from; what is neither sampled, nor named, nor made here are Atari's logs."""
    name = split(task.data)[0]
    if name in GRIDWORLDS:
        return name
    if task.env not in (None, "auto"):
        return task.env
    return made[name].arguments["env"] if name in made else "atari"
