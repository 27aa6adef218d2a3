"""The compiled loop: many updates in one call, and nothing but their result comes back."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import Array, lax

from dr3.compiled_programs import known_options
from dr3.data.batch import Batch
from dr3.methods import Method
from dr3.regularizers import Memory, Regularizer, Remembering, remembered


class Progress(NamedTuple):
    """Where a member stands."""

    learner: Any
    step: Array  # () int32: updates made
    finite: Array  # () bool: False once an objective was NaN or infinite; the update that it belongs to is not made
    memory: Memory = Memory()  # what the regularizer asks to be kept of earlier critics


class Block(NamedTuple):
    """The batches of some consecutive updates, drawn on the host: in place of a table that is not on the device."""

    batches: Batch  # every column (steps, batch_size, …)
    first: Array  # () int32: the update that the first batch is for


def stream(seed: Array | int, purpose: int) -> Array:
    """The keys of one seed for one purpose: 0 initial weights, 1 batches, 2 noise inside an update, 3 noise of a
    measurement, 4 of acting in an evaluation, 5 units that are drawn anew."""
    return jax.random.fold_in(jax.random.key(seed), purpose)


def draw_rows(seed: Array | int, step: Array | int, batch_size: int, rows: Array | int) -> Array:
    """Which rows update number `step` (from 0) sees: a function of (seed, step) alone, so resuming is exact."""
    return jax.random.randint(jax.random.fold_in(stream(seed, 1), step), (batch_size,), 0, rows)


# What XLA does for this loop beyond its defaults, where its version knows them; both are about a CPU, and others do not
# look at them.
COMPILER_OPTIONS = {
    # A finer look at what a loop may overwrite. Without it the weights and both of Adam's moments are copied at every
    # update; the results are the same to the last bit.
    "xla_cpu_copy_insertion_use_region_analysis": True,
    # Whole AVX-512 registers, where there are any, and not halves: 4 % of an update of the Nature network.
    "xla_cpu_prefer_vector_width": 512,
}


def advance(
    method: Method, regularizer: Regularizer | None, seed: Array, progress: Progress, source: Batch | Block, stop: Array
) -> Progress:
    """Update until `stop` updates have been made, or until the objective is no longer finite.

    Batches are drawn from a whole table, or are those of a block, which must reach to `stop`, and one further for a
    regularizer that asks for a second batch.
    """
    return compiled_loop()(method, regularizer, seed, progress, source, stop)


@cache
def compiled_loop() -> Any:
    """Made at its first use: what the compiler knows can be asked only once JAX has its devices."""
    return jax.jit(_advance, donate_argnames="progress", compiler_options=known_options(COMPILER_OPTIONS))


def _advance(
    method: Method, regularizer: Regularizer | None, seed: Array, progress: Progress, source: Batch | Block, stop: Array
) -> Progress:
    """`advance`, as it is traced.

    The bounds are arguments and not part of the program: whatever the chunk length, the same compiled instructions run,
    and the weights come out the same to the last bit. Around the loop over updates is one over the target network's
    periods, so that inside it the target is a constant that nothing copies.
    """

    kept, redo_every = remembered(regularizer), getattr(method, "redo_every", 0)

    def batch_for(step: Array) -> Batch:
        if isinstance(source, Block):
            return jax.tree.map(lambda column: column[step - source.first], source.batches)
        if not method.batch_size:
            return source.all_rows()
        return source.take(draw_rows(seed, step, method.batch_size, len(source.rewards)))

    def update(progress: Progress) -> Progress:
        learner, step, _, memory = progress
        key = jax.random.fold_in(stream(seed, 2), step)
        term = regularizer
        if kept:
            # A second batch, for a term that asks for one: the next update's, which nothing has learned from yet.
            second = batch_for(step + 1) if "previous" in kept else None
            term = Remembering(cast(Regularizer, regularizer), memory, second)
        batch = batch_for(step)
        updated, objective = method.update(learner, batch, key, term)
        # Only the objective is looked at: an overflow in the weights reaches the next one, and a look at all weights
        # after every update would cost 15 % of a small network's speed. (The select fuses into the optimizer's pass.)
        finite, before = jnp.isfinite(objective), method.model(learner)
        learner = jax.tree.map(lambda new, old: jnp.where(finite, new, old), updated, learner)
        if redo_every:  # dormant units are drawn anew; not where the update was not made
            due = ((step + 1) % redo_every == 0) & finite
            draw, recycle = jax.random.fold_in(stream(seed, 5), step), cast(Any, method).recycle
            learner = lax.cond(due, lambda now: recycle(now, batch, draw), lambda same: same, learner)
        if "previous" in kept:
            memory = memory._replace(previous=jax.tree.map(partial(jnp.where, finite), before, memory.previous))
        return Progress(learner, jnp.where(finite, step + 1, step), finite, memory)

    def until(limit: Array, progress: Progress) -> Progress:
        return lax.while_loop(lambda now: (now.step < limit) & now.finite, update, progress)

    period = method.synchronise_every
    if period is None:
        return until(stop, progress)

    def one_period(progress: Progress) -> Progress:
        progress = until(jnp.minimum(stop, (progress.step // period + 1) * period), progress)
        due = (progress.step % period == 0) & progress.finite
        return progress._replace(learner=lax.cond(due, method.synchronise, lambda same: same, progress.learner))

    return lax.while_loop(lambda now: (now.step < stop) & now.finite, one_period, progress)


@jax.jit
def all_finite(tree: Any) -> Array:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()


@partial(jax.jit, static_argnames="spec")
def begin(
    method: Method, seed: Array, spec: Any, critic: Any = None, regularizer: Regularizer | None = None
) -> Progress:
    """A member before its first update: with weights of its own, or with those of a `critic` that exists already."""
    learner = method.init(spec, stream(seed, 0))
    if critic is not None:
        learner = method.start_from(learner, critic)
    memory = Memory(**dict.fromkeys(remembered(regularizer), method.model(learner)))
    return Progress(learner, jnp.zeros((), jnp.int32), jnp.ones((), bool), memory)
