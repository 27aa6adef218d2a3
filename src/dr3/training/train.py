"""Training a population: batches meet a method and a regularizer, and a run folder comes out."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import ThreadpoolController

from dr3.cores import available_cores
from dr3.data.batch import Batch
from dr3.data.transitions import Transitions
from dr3.envs import Gridworld, MinAtar
from dr3.errors import UserError
from dr3.methods import Method
from dr3.regularizers import Regularizer
from dr3.results import Result, write_results
from dr3.training import config as configuration
from dr3.training.evaluation import Evaluator, Policy, evaluator_for
from dr3.training.folder import RunFolder, describe_environment, read_lines
from dr3.training.interruption import watched
from dr3.training.loop import Progress, advance, all_finite, begin
from dr3.training.member import Member, population
from dr3.training.metrics import measure, probe_of
from dr3.training.progress import Reporter, reporter
from dr3.training.runs import Runs
from dr3.training.start import Start

SECONDS_PER_CHUNK = 1.0  # how long a stop signal may wait, and how often progress shows
SECONDS_PER_STATE = 30.0  # how much work a kill may cost


def train(
    data: Transitions,
    method: Method | Sequence[Method],
    *,
    regularizer: Regularizer | Sequence[Regularizer | None] | None = None,
    steps: int,
    seeds: int | Sequence[int] = 1,
    init_from: str | None = None,
    env: str | Gridworld | MinAtar | Evaluator | Literal["auto"] | None = "auto",
    episodes: int = 10,
    out: str | Path | None = None,
    metrics_every: int | None = None,
    evaluate_every: int | None = None,
    chunk: int | None = None,
    progress: bool = True,
) -> Runs:
    """Train every method with every regularizer and every seed on `data`, or go on with what `out` holds of it.

    `init_from` (`RUN@STEP` or `RUN@STEP:MEMBER`) lets every member start from a critic that another run has learned,
    with a target network equal to it and a fresh optimizer; by default all start from random weights.

    `env` is where policies are tried: a gridworld's name (exact values), a game of MinAtar (`minatar/breakout`), a
    Gymnasium id, an evaluator of your own, None for nowhere; "auto" takes the world that the data came from. `out` is
    the run folder, by default one under `runs/` whose name follows from the configuration. Metrics are taken every
    `metrics_every` updates (default: 100 times), policies are tried and critics saved every `evaluate_every` updates
    (default: 20 times). `chunk` bounds the updates in one compiled call, by default about a second's worth; results do
    not depend on it.

    Ctrl-C or SIGTERM saves everything and then stops; the same call goes on from there, and a run that was killed at
    any moment ends with the same weights, metrics and evaluations, bit for bit, as one that was not.
    """
    if chunk is not None and chunk < 1:
        raise UserError(f"chunk must be at least 1, not {chunk}.")
    members = population(method, regularizer, seeds)
    start = None if init_from is None else Start.read(init_from)
    where = data.world if env == "auto" else env
    evaluator = None if where is None else evaluator_for(where, episodes=episodes)
    config = configuration.resolve(
        data,
        members,
        evaluator,
        steps=steps,
        metrics_every=metrics_every,
        evaluate_every=evaluate_every,
        execution=execution_on(jax.default_backend()),
        init_from=None if start is None else start.describe(),
    )
    folder = RunFolder(out if out is not None else Path("runs") / configuration.folder_name(config))
    with folder.locked():
        if folder.config.exists():
            stored = json.loads(folder.config.read_text())
            # Cadences that were not asked for are those the run began with: its length may have been another.
            config["metrics_every"] = metrics_every or stored["metrics_every"]
            config["evaluate_every"] = evaluate_every or stored["evaluate_every"]
            configuration.check_same(folder.path, stored, config)
        # What cannot be trained is refused before the folder says that it is this run's.
        training = Training(folder, config, members, data, evaluator, start)
        if not folder.config.exists():
            folder.write(folder.environment, describe_environment())
        folder.write(folder.config, config)
        training.run(chunk=chunk, show=progress)
    return Runs(folder.path)


def execution_on(backend: str) -> str:
    """How members run: on a CPU each in a thread of its own, on an accelerator stacked into one program.

    Measured on two cores: a small network does not fill one core's caches with several members stacked, and two threads
    that run the same compiled program at once are nearly twice as fast as one.
    """
    return "threads" if backend == "cpu" else "stacked"


class Training:
    """One population, from wherever its folder left off."""

    def __init__(
        self,
        folder: RunFolder,
        config: dict[str, Any],
        members: list[Member],
        data: Transitions,
        evaluator: Evaluator | None,
        start: Start | None,
    ) -> None:
        self.folder, self.config, self.members, self.evaluator = folder, config, members, evaluator
        self.spec = configuration.spec_of(config)
        self.start = start
        self.tables = _tables(members, data)
        self.probes = {key: probe_of(table) for key, table in self.tables.items()}
        self.table_of = [repr(member.method) for member in members]
        # What a compiled program takes as arguments: numbers on the device, so that members share one program.
        self.traced = [jax.tree.map(jnp.asarray, (m.method, m.regularizer, np.uint32(m.seed))) for m in members]
        if start is not None:
            for member, (method, _, seed) in zip(members, self.traced, strict=True):
                own = jax.eval_shape(begin, method, seed, self.spec).learner
                start.check_fits(member.method.critic(own), member.method.name)

    def run(self, *, chunk: int | None, show: bool) -> None:
        steps = self.config["steps"]
        self.step, self.progress, notes = self._resume()
        title = f"{self.members[0].algorithm} x {len(self.members)}"
        with reporter(title, self.step, steps, show=show) as report, watched() as asked, self._pool() as pool:
            for note in notes:
                report.say(note)
            if self.step == 0:
                self._measure()
            self._write_status()
            saved, length = time.monotonic(), chunk or 16
            while self.step < steps:
                began, before = time.monotonic(), self.step
                stop = min(self.step + length, *self._boundaries(), steps)
                self._advance(stop, pool, report)
                seconds = time.monotonic() - began
                report.at(stop, per_second=self._speed(stop - before, seconds), note=self._note())
                self._measure()
                if asked.signal or self.step == steps or time.monotonic() - saved > SECONDS_PER_STATE:
                    self._save()
                    saved = time.monotonic()
                if asked.signal and self.step < steps:
                    report.say(f"Stopped at step {self.step:,}, everything saved; the same command goes on from there.")
                    raise KeyboardInterrupt if asked.signal == signal.SIGINT else SystemExit(128 + asked.signal)
                if chunk is None:  # grow or shrink by at most 4 towards a second's worth
                    wanted = length * SECONDS_PER_CHUNK / max(seconds, 1e-9)
                    length = int(np.clip(wanted, max(1, length // 4), 4 * length))

    # --- One stretch of updates ---

    def _advance(self, stop: int, pool: ThreadPoolExecutor, report: Reporter) -> None:
        live = [number for number, now in enumerate(self.progress) if bool(now.finite)]
        run = self._in_threads if self.config["execution"] == "threads" else self._stacked
        for number, now in zip(live, run(live, stop, pool), strict=True):
            self.progress[number] = now
            if not bool(now.finite):
                at = f"{int(now.step):,}"
                report.say(f"Member {number} diverged: after {at} updates its loss or weights are not finite; frozen.")
        self.step = stop

    def _in_threads(self, live: list[int], stop: int, pool: ThreadPoolExecutor) -> list[Progress]:
        def one(number: int) -> Progress:
            table = self.tables[self.table_of[number]]
            return jax.block_until_ready(advance(*self.traced[number], self.progress[number], table, jnp.int32(stop)))

        return list(pool.map(one, live))

    def _stacked(self, live: list[int], stop: int, pool: ThreadPoolExecutor) -> list[Progress]:
        """Members whose programs and tables are the same become one program over a leading axis."""
        done: dict[int, Progress] = {}
        kinds: dict[Any, list[int]] = {}
        for number in live:
            kinds.setdefault((jax.tree.structure(self.traced[number]), self.table_of[number]), []).append(number)
        for (_, key), group in kinds.items():
            method, regularizer, seed, now = jax.tree.map(
                lambda *leaves: jnp.stack(leaves), *[(*self.traced[number], self.progress[number]) for number in group]
            )
            ahead = jax.vmap(advance, in_axes=(0, 0, 0, 0, None, None))(
                method, regularizer, seed, now, self.tables[key], jnp.int32(stop)
            )
            for place, number in enumerate(group):
                done[number] = jax.tree.map(lambda leaf, place=place: leaf[place], ahead)
        return [done[number] for number in live]

    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=min(len(self.members), available_cores()))

    # --- What is written ---

    def _measure(self) -> None:
        """Metrics, evaluations and critics, where this step is due for them."""
        # The matrices here are small, and the cores are taken: BLAS threads would only wait for each other.
        with _blas().limit(limits=1):
            self._measure_now()

    def _measure_now(self) -> None:
        last = self.step == self.config["steps"]
        if last or self.step % self.config["metrics_every"] == 0:
            self._freeze_members_with_broken_weights()
            self.folder.append(self.folder.metrics, [self._metrics_of(number) for number in self._live()])
        if last or self.step % self.config["evaluate_every"] == 0:
            if self.evaluator is not None:
                self.folder.append(self.folder.evaluations, [self._evaluate(number) for number in self._live()])
            critics = [m.method.critic(now.learner) for m, now in zip(self.members, self.progress, strict=True)]
            self.folder.checkpoints.save(self.step, critics)

    def _freeze_members_with_broken_weights(self) -> None:
        """An objective can stay finite while a weight that it does not read is not a number."""
        for number in self._live():
            now = self.progress[number]
            if not bool(all_finite(now.learner)):
                self.progress[number] = now._replace(finite=jnp.zeros((), bool))

    def _metrics_of(self, number: int) -> dict[str, Any]:
        values = measure(*self.traced[number], self.progress[number], self.probes[self.table_of[number]])
        return {"step": self.step, "member": number, **values}

    def _evaluate(self, number: int) -> dict[str, Any]:
        assert self.evaluator is not None
        member, critic = self.members[number], self.members[number].method.critic(self.progress[number].learner)

        policy = Policy(self.traced[number][0], critic, self.spec.observation_shape)
        outcome = self.evaluator(policy, seed=member.seed, step=self.step, discount=member.method.discount)
        return {"step": self.step, "member": number, **outcome}

    def _save(self) -> None:
        self.folder.state.save(self.step, self.progress, keep=2)
        self._write_results()
        self._write_status()

    def _write_results(self) -> None:
        if self.evaluator is not None:
            task = self.config["data"]["name"]
            rows = read_lines(self.folder.evaluations)
            members = [(self.members[row["member"]], row) for row in rows]
            write_results(
                self.folder.results,
                [Result(m.algorithm, task, m.seed, row["step"], tuple(row["returns"])) for m, row in members],
            )

    def _write_status(self) -> None:
        diverged = {str(n): int(now.step) for n, now in enumerate(self.progress) if not bool(now.finite)}
        finished = self.step == self.config["steps"]
        self.folder.write(self.folder.status, {"step": self.step, "finished": finished, "diverged": diverged})

    # --- Where it stands ---

    def _resume(self) -> tuple[int, list[Progress], list[str]]:
        """The newest whole state, with the files cut back to it; a fresh start where there is none."""
        critic = None if self.start is None else self.start.critic
        fresh = [begin(method, seed, self.spec, critic) for method, _, seed in self.traced]
        step, broken = self.folder.latest_state()
        notes = [f"The state of step {number:,} in {self.folder.path} is damaged; it is not used." for number in broken]
        if step is None:
            # Whatever was measured at step 0 is measured again.
            self.folder.rewind(-1)
            # Copies, since an update takes over the arrays it is given: critic and target may be one array here.
            return 0, jax.tree.map(jnp.array, fresh), notes
        self.folder.rewind(step)
        restored = jax.tree.map(jnp.array, self.folder.state.restore(step, fresh))
        finished = step == self.config["steps"]
        place = f"step {step:,} of {self.folder.path}"
        notes.append(f"Nothing is left to do after {place}." if finished else f"Going on from {place}.")
        return step, restored, notes

    def _boundaries(self) -> list[int]:
        cadences = (self.config["metrics_every"], self.config["evaluate_every"])
        return [(self.step // every + 1) * every for every in cadences]

    def _live(self) -> list[int]:
        return [number for number, now in enumerate(self.progress) if bool(now.finite)]

    def _speed(self, updates: int, seconds: float) -> float:
        """Updates per second, all members together."""
        return updates * len(self._live()) / max(seconds, 1e-9)

    def _note(self) -> str:
        dead = len(self.members) - len(self._live())
        return f", {dead} diverged" if dead else ""


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _tables(members: Sequence[Member], data: Transitions) -> dict[str, Batch]:
    """What each distinct method learns from, on the device once for all that learn from the same."""
    tables: dict[str, Batch] = {}
    by_content: dict[str, Batch] = {}
    for method in {repr(member.method): member.method for member in members}.values():
        prepared = method.prepare(data)
        tables[repr(method)] = by_content.setdefault(prepared.fingerprint(), Batch.of(prepared))
    return tables
