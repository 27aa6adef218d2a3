"""Updates with dr3, asked for by run.py: the loop that `dr3.train` runs, members and threads as a command has them."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dr3 import BEER, COG, CQL, DQN, DR3, SAC, ContinuousCQL, LabelNoiseDR3, Sum
from dr3.data.batch import Batch
from dr3.data.transitions import ContinuousActions, DiscreteActions
from dr3.methods import Spec
from dr3.training.execution import Work, in_threads, one_core_each, start_xla, thread_pool, threads_for
from dr3.training.loop import begin
from shapes import ACTIONS, COEFFICIENT, DISCOUNT, LEARNING_RATE, TARGET_PERIOD, Control, Run, Shape, serve

REGULARIZERS = {
    "q": None,
    "cql": None,
    "q+dr3": DR3(COEFFICIENT),
    "q+dr3-stop": DR3(COEFFICIENT, stop_gradient="next"),
    "q+label-noise": LabelNoiseDR3(COEFFICIENT),
    "q+dr3+beer": Sum(terms=(DR3(COEFFICIENT), BEER(0.001))),
    **dict.fromkeys(("q+layer-norm", "q+clip", "q+hl-gauss")),
}
# What remedies set in the method.
SETTINGS: dict[str, dict[str, Any]] = {
    "q+layer-norm": {"layer_norm": True},
    "q+clip": {"target_clip": True},
    "q+hl-gauss": {"hl_gauss": 101, "support": (-10.0, 10.0)},
}
SQUARE = 2048


@cache
def table_of(shape: Shape) -> Batch:
    """Noise: the time of an update does not depend on what the numbers are."""
    rng = np.random.default_rng(0)

    def observations() -> np.ndarray:
        size = (shape.rows, *shape.observation)
        if shape.dtype == "float32":
            return rng.normal(size=size).astype(np.float32)
        return rng.integers(0, 256 if shape.dtype == "uint8" else 2, size).astype(shape.dtype)

    actions = jnp.asarray(rng.integers(0, ACTIONS, shape.rows), jnp.int32)
    rewards = jnp.asarray(rng.normal(size=shape.rows), jnp.float32)
    first, second = jnp.asarray(observations()), jnp.asarray(observations())
    terminals = jnp.asarray(rng.random(shape.rows) < 0.01, jnp.float32)
    bounds = jnp.tile(jnp.array([-100.0, 100.0]), (shape.rows, 1))  # read only where targets are clipped
    return Batch(first, actions, rewards, second, terminals, actions, rewards, None, value_bounds=bounds)


def build(shape: Shape | Control, work: str, members: int) -> Run:
    method, spec = (control_method(shape), control_spec(shape)) if isinstance(shape, Control) else discrete(shape, work)
    start_xla(threads_for(members, method, spec, shape.rows))  # a process is asked about one network and population
    if work.startswith("matmul"):
        return matmuls(shape, work)
    table = control_table(shape) if isinstance(shape, Control) else table_of(shape)
    return updates(method, table, spec, work, members)


def discrete(shape: Shape, work: str) -> tuple[DQN, Spec]:
    kind = CQL if work == "cql" else DQN
    method = kind(
        discount=DISCOUNT,
        learning_rate=LEARNING_RATE,
        batch_size=shape.batch,
        hidden=shape.hidden,
        target_period=TARGET_PERIOD,
        network=shape.network,
        **SETTINGS.get(work, {}),
    )
    return method, Spec(shape.observation, DiscreteActions(ACTIONS))


def control_method(shape: Control) -> SAC:
    common: dict[str, Any] = {"batch_size": shape.batch, "hidden": shape.hidden, "policy_hidden": shape.hidden}
    if shape.channels:
        pictures: dict[str, Any] = {"channels": shape.channels, "encoder": "strided", "crop": shape.crop}
        return COG(**common, **pictures, sampled_actions=shape.sampled_actions, warm_start=0)
    if shape.sampled_actions:  # past its warm start, as for most of a run
        return ContinuousCQL(**common, sampled_actions=shape.sampled_actions, warm_start=0)
    return SAC(**common)


def control_spec(shape: Control) -> Spec:
    return Spec(shape.observation, ContinuousActions(shape.actions))


@cache
def control_table(shape: Control) -> Batch:
    rng = np.random.default_rng(0)
    size = (shape.rows, *shape.observation)
    if shape.channels:
        first, second = (jnp.asarray(rng.integers(0, 256, size), jnp.uint8) for _ in range(2))
    else:
        first, second = (jnp.asarray(rng.normal(size=size), jnp.float32) for _ in range(2))
    actions = jnp.asarray(rng.uniform(-1, 1, (shape.rows, shape.actions)), jnp.float32)
    rewards = jnp.asarray(rng.normal(size=shape.rows), jnp.float32)
    terminals = jnp.asarray(rng.random(shape.rows) < 0.01, jnp.float32)
    return Batch(first, actions, rewards, second, terminals, actions, rewards, None)


def updates(method: Any, table: Batch, spec: Spec, work: str, members: int) -> Run:
    traced = [jax.tree.map(jnp.asarray, (method, REGULARIZERS[work], np.uint32(seed))) for seed in range(members)]
    progress = [begin(method, seed, spec) for method, _, seed in traced]
    pool, one_core = thread_pool(members), one_core_each(members)

    def run(updates: int) -> None:
        work = [Work(mine, now, table) for mine, now in zip(traced, progress, strict=True)]
        progress[:] = in_threads(work, int(progress[0].step) + updates, pool, one_core=one_core)
        assert all(bool(now.finite) for now in progress), "a member diverged, and made fewer updates than were timed"

    return run


def matmuls(shape: Shape | Control, work: str) -> Run:
    """What the machine can do at most: products of two squares, or of a batch and a hidden layer's weights."""
    inner, outer = (SQUARE, SQUARE) if work == "matmul-square" else shape.hidden[-2:]
    left = jnp.ones((SQUARE if work == "matmul-square" else shape.batch, inner))
    multiply, right = jax.jit(jnp.matmul), jnp.full((inner, outer), 1.0 / inner)

    def run(times: int) -> None:
        for _ in range(times):
            jax.block_until_ready(multiply(left, right))

    return run


if __name__ == "__main__":
    serve(build)
