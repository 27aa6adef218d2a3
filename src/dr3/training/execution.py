"""How the members of a population run: side by side in threads, or stacked into one program."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dr3.cores import available_cores
from dr3.data.batch import Batch
from dr3.methods import Method, Spec
from dr3.networks.kernels.blocks import ONE_CORE
from dr3.training.loop import Block, Progress, advance, begin


class Work(NamedTuple):
    """One member's share: what its compiled program takes as arguments."""

    traced: tuple[Any, Any, Any]  # method, regularizer, seed, with their numbers on the device
    progress: Progress
    source: Batch | Block


# Rows of a batch times weights of the critic below which two cores do not share an update well. XLA gives each of its
# steps, most of some microseconds, to a thread that is free: to wake it takes up to 50 µs, and what it reads is in
# another core's cache. One member with DR3 on two cores (Zen 5), ms with one thread | with two:
#   MLP 2 x  64, batch  32 ( 0.2 million):  0.022 | 0.040      MLP 2 x 512, batch 32 ( 9 million):  0.62 | 0.76
#   MLP 2 x 128, batch 256 ( 5 million):    0.37  | 0.48       MLP 2 x 512, batch 64 (18 million):  1.10 | 1.05
#   MinAtar's,   batch  32 ( 4 million):    0.53  | 0.69       MinAtar's,  batch 128 (17 million):  2.35 | 2.22
# An older machine (Zen 4) shared MinAtar's update in 0.68 ms instead of 1.05: with two threads it was the quicker one.
SMALL = 10_000_000


def execution_on(backend: str) -> str:
    """How members run: on a CPU each in a thread of its own, on an accelerator stacked into one program.

    Measured on two cores: a small network does not fill one core's caches with several members stacked, and two threads
    that run the same compiled program at once are nearly twice as fast as one.
    """
    return "threads" if backend == "cpu" else "stacked"


def thread_pool(members: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=min(members, available_cores()))


def one_core_each(members: int) -> bool:
    """Whether no core is left for a member to share a product with another. Networks of images go by it.

    A run keeps what it began with, because the order of a sum, and so the last bits of it, depends on it.
    """
    return members >= available_cores()


def in_threads(work: Sequence[Work], stop: int, pool: ThreadPoolExecutor, *, one_core: bool) -> list[Progress]:
    """Every member advanced to `stop`, as many at a time as the pool has threads."""

    def one(share: Work) -> Progress:
        with ONE_CORE(one_core):
            return jax.block_until_ready(advance(*share.traced, share.progress, share.source, jnp.int32(stop)))

    return list(pool.map(one, work))


def stacked(work: Sequence[Work], stop: int) -> list[Progress]:
    """The same, with members whose programs are the same as one program over a leading axis.

    Members on the device share one table. Blocks are each member's own, and stacked like all else.
    """
    kinds: dict[Any, list[int]] = {}
    for place, share in enumerate(work):
        table = None if isinstance(share.source, Block) else id(share.source)
        kinds.setdefault((jax.tree.structure(share.traced), table), []).append(place)
    done: dict[int, Progress] = {}
    for places in kinds.values():
        method, regularizer, seed, now = jax.tree.map(
            lambda *leaves: jnp.stack(leaves), *[(*work[place].traced, work[place].progress) for place in places]
        )
        source, axis = work[places[0]].source, None
        if isinstance(source, Block):
            source, axis = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[work[place].source for place in places]), 0
        ahead = jax.vmap(advance, in_axes=(0, 0, 0, 0, axis, None))(
            method, regularizer, seed, now, source, jnp.int32(stop)
        )
        for row, place in enumerate(places):
            done[place] = jax.tree.map(lambda leaf, row=row: leaf[row], ahead)
    return [done[place] for place in range(len(work))]


def threads_for(members: int, method: Method, spec: Spec, rows: int) -> int:
    """A thread for each member of small updates, else one for each core. `rows`: of the table."""
    cores = available_cores()
    if members >= cores:
        return cores
    try:
        learner = jax.eval_shape(begin, method, jax.ShapeDtypeStruct((), "uint32"), spec).learner
    except Exception:  # this is about speed alone: `train` refuses, in a sentence, what does not fit together
        return cores
    weights = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(method.model(learner)))
    return max(members, 1) if weights * (method.batch_size or rows) < SMALL else cores


def start_xla(threads: int) -> None:
    """Have XLA start with so many threads, which it keeps for as long as the process lives.

    Where it has started already, this does nothing: so it is for commands, which train once, and not for `dr3.train`,
    after which a large network may follow. A user's own NPROC, which XLA reads in the place of a count of cores, stays.
    """
    if "NPROC" in os.environ:
        return
    os.environ["NPROC"] = str(threads)
    try:
        jax.devices()
    finally:
        del os.environ["NPROC"]
