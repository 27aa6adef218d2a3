"""Where updates get their rows from: a table on the device, or blocks of batches that the host makes ahead of use.

Which rows an update sees is a function of (seed, step) alone (`draw_rows`), so both ways give the very same batches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Literal, Self, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dr3.cores import machine_memory
from dr3.data.batch import Batch
from dr3.data.frames import Frames
from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.regularizers import remembered
from dr3.runs.member import Member
from dr3.training.loop import Block, draw_rows
from dr3.training.metrics import probe_of

DataOn = Literal["auto", "device", "host"]

RESIDENT_SHARE = 0.25  # of the device's memory: weights, optimizers and, on a CPU, the table as it was read come on top
BLOCK_BYTES = 8 * 2**20  # of one block; each member's seed has one in use, AHEAD more, and copies on their way
BLOCK_STEPS = 1024
AHEAD = 2


def place_of(data: Transitions, asked: DataOn) -> Literal["device", "host"]:
    """Where the table is while members train on it; "auto" is the device, unless it would take too much of it."""
    if asked not in get_args(DataOn):
        raise UserError(f"data_on must be one of {', '.join(map(repr, get_args(DataOn)))}, not {asked!r}.")
    if asked != "auto":
        return asked
    return "device" if data.nbytes <= RESIDENT_SHARE * _device_memory() else "host"


class Feed:
    """What each member learns from, on the `place` it was given; a table that several learn from is there once."""

    def __init__(self, members: Sequence[Member], data: Transitions, place: Literal["device", "host"]) -> None:
        prepared = {repr(member.method): member.method.prepare(data) for member in members}
        content = {word: table.fingerprint() for word, table in prepared.items()}
        tables = {content[word]: table for word, table in prepared.items()}
        self._probes = {key: Batch.of(probe_of(table)).all_rows() for key, table in tables.items()}
        self._table_of = [content[repr(member.method)] for member in members]
        self._resident: dict[str, Batch] = {}
        self._streams: list[Stream] = []
        if place == "device":
            self._resident = {key: Batch.of(table) for key, table in tables.items()}
            return
        for member in members:
            if not member.method.batch_size:
                raise UserError(
                    "batch_size 0 takes the whole table in every update, but this table is streamed from the host; "
                    "give a batch size, or keep the data on the device."
                )
        most = max(member.method.batch_size for member in members)
        row = max(_row_bytes(table) for table in tables.values())
        # One length for all, so that all members come to the end of a block at once.
        self.length = int(np.clip(BLOCK_BYTES // (most * row), 1, BLOCK_STEPS))
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="loader")
        shared: dict[tuple[str, int, int, bool], Stream] = {}
        for member, key in zip(members, self._table_of, strict=True):
            kind = key, member.seed, member.method.batch_size, "previous" in remembered(member.regularizer)
            if kind not in shared:
                shared[kind] = Stream(tables[key], *kind[1:], length=self.length, worker=self._worker)
            self._streams.append(shared[kind])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._streams:
            self._worker.shutdown(cancel_futures=True)

    def probe(self, number: int) -> Batch:
        """The rows that a member is measured on."""
        return self._probes[self._table_of[number]]

    def at(self, number: int, step: int) -> Batch | Block:
        """What a member's updates from `step` on draw from: the table, or a block that lasts until `reaches(step)`."""
        if self._streams:
            return self._streams[number].block(step // self.length)
        return self._resident[self._table_of[number]]

    def reaches(self, step: int, stop: int) -> int:
        """How far towards `stop` one call may go with what `at(…, step)` gives."""
        return min(stop, (step // self.length + 1) * self.length) if self._streams else stop


class Stream:
    """The batches of one seed, some steps to a block, made in the background before they are needed.

    With `further` a block holds the batch after its last one, too: the second batch of its last update.
    """

    def __init__(
        self,
        table: Transitions,
        seed: int,
        batch_size: int,
        further: bool,
        *,
        length: int,
        worker: ThreadPoolExecutor,
    ) -> None:
        self._table, self._seed, self._batch_size, self._length = table, seed, batch_size, length
        self._held, self._worker = length + further, worker
        self._made: dict[int, Future[Block]] = {}

    def block(self, number: int) -> Block:
        """Steps number * length … (number + 1) * length - 1; whatever lies before it is let go of."""
        wanted = range(number, number + 1 + AHEAD)
        self._made = {each: self._made.get(each) or self._worker.submit(self._make, each) for each in wanted}
        return self._made[number].result()

    def _make(self, number: int) -> Block:
        first = number * self._length
        rows = rows_of_steps(self._seed, first, self._held, self._batch_size, len(self._table))
        some = self._table.rows(rows.ravel())
        if isinstance(some.observations, Frames):  # as plain arrays: how many frames a block uses differs
            some = dataclasses.replace(
                some, observations=some.observations[:], next_observations=some.next_observations[:]
            )
        batches = jax.tree.map(lambda column: column.reshape(*rows.shape, *column.shape[1:]), Batch.of(some))
        return Block(batches, jnp.int32(first))


def rows_of_steps(seed: int, first: int, count: int, batch_size: int, rows: int) -> np.ndarray:
    """What `draw_rows` gives for `count` steps from `first` on, drawn on the host: (count, batch_size)."""
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        return np.asarray(_draw_many(np.uint32(seed), first + np.arange(count, dtype=np.int32), batch_size, rows))


@partial(jax.jit, static_argnames=("batch_size", "rows"))
def _draw_many(seed: Array, steps: Array, batch_size: int, rows: int) -> Array:
    return jax.vmap(lambda step: draw_rows(seed, step, batch_size, rows))(steps)


def _row_bytes(table: Transitions) -> int:
    """A row of a batch, both observations in full."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(Batch.of(table.rows(slice(1))).all_rows()))


def _device_memory() -> int:
    statistics = jax.local_devices()[0].memory_stats() or {}
    return statistics.get("bytes_limit") or machine_memory()
