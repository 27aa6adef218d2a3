"""How the members of a population run: side by side in threads, or stacked into one program."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dr3.cores import available_cores
from dr3.data.batch import Batch
from dr3.networks.kernels.blocks import ONE_CORE
from dr3.training.loop import Block, Progress, advance


class Work(NamedTuple):
    """One member's share: what its compiled program takes as arguments."""

    traced: tuple[Any, Any, Any]  # method, regularizer, seed, with their numbers on the device
    progress: Progress
    source: Batch | Block


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
