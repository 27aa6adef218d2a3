"""One population trained from wherever its folder left off."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import ThreadpoolController

from dr3.cores import machine_memory
from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.files import read_lines, write_json
from dr3.progress import Reporter, reporter
from dr3.runs.config import RunConfig
from dr3.runs.folder import RunFolder
from dr3.runs.interruption import watched
from dr3.runs.outcomes import NORMALISED_SCORE
from dr3.runs.results import CheckpointResult, write_results
from dr3.training.evaluation import Evaluator, Policy
from dr3.training.execution import Work, in_threads, stacked, thread_pool
from dr3.training.feed import Feed
from dr3.training.loop import Progress, all_finite, begin
from dr3.training.metrics import measure
from dr3.training.start import Start

SECONDS_PER_CHUNK = 1.0  # how long a stop signal may wait, and how often progress shows
SECONDS_PER_STATE = 30.0  # how much work a kill may cost


class Training:
    """One population, from wherever its folder left off."""

    def __init__(
        self,
        folder: RunFolder,
        config: RunConfig,
        data: Transitions,
        place: Literal["device", "host"],
        evaluator: Evaluator | None,
        start: Start | None,
    ) -> None:
        self.folder, self.config, self.evaluator = folder, config, evaluator
        self.members, self.spec = config.members, config.spec
        self.start = start
        self.feed = Feed(self.members, data, place)
        # What a compiled program takes as arguments: numbers on the device, so that members share one program.
        self.traced = [jax.tree.map(jnp.asarray, (m.method, m.regularizer, np.uint32(m.seed))) for m in self.members]
        self._check_memory()
        if start is not None:
            for member, (method, _, seed) in zip(self.members, self.traced, strict=True):
                own = jax.eval_shape(begin, method, seed, self.spec).learner
                start.check_fits(member.method.critic(own), member.method.name)

    def _check_memory(self) -> None:
        """Refuse networks that no memory holds: XLA, asked for them, would abort the whole process."""
        sizes: dict[Any, int] = {}
        for method, regularizer, seed in self.traced:
            kind = jax.tree.structure((method, regularizer))
            if kind not in sizes:
                try:
                    leaves = jax.tree.leaves(jax.eval_shape(begin, method, seed, self.spec))
                    sizes[kind] = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
                except OverflowError:  # more numbers than a shape can say
                    sizes[kind] = 2**63
        needed = sum(sizes[jax.tree.structure((method, regularizer))] for method, regularizer, _ in self.traced)
        if needed > (memory := machine_memory()):
            raise UserError(
                f"The networks and their optimizers take {needed / 1e9:,.0f} GB, and this machine has "
                f"{memory / 1e9:,.0f} GB; ask for smaller layers (hidden) or fewer members."
            )

    def run(self, *, chunk: int | None, show: bool, save_every: float | None = None) -> None:
        steps = self.config.steps
        patience = SECONDS_PER_STATE if save_every is None else save_every
        self.step, self.progress, notes = self._resume()
        title = f"{self.members[0].algorithm} x {len(self.members)}"
        with (
            reporter(title, self.step, steps, show=show) as report,
            watched() as stopping,
            thread_pool(len(self.members)) as pool,
            self.feed,
        ):
            for note in notes:
                report.say(note)
            if self.step == 0:
                self._measure(report)
            self._write_status()
            saved, length = time.monotonic(), chunk or 16
            while self.step < steps:
                began, before = time.monotonic(), self.step
                stop = min(self.step + length, *self._boundaries(), steps)
                self._advance(stop, pool, report)
                seconds = time.monotonic() - began
                report.at(stop, per_second=self._speed(stop - before, seconds), note=self._note())
                self._measure(report)
                if stopping.signal or self.step == steps or time.monotonic() - saved > patience:
                    self._save()
                    saved = time.monotonic()
                if stopping.signal and self.step < steps:
                    report.say(f"Stopped at step {self.step:,}, everything saved; the same command goes on from there.")
                    stopping.leave()
                if chunk is None:  # grow or shrink by at most 4 towards a second's worth
                    # Of what was done: a cadence may have cut the stretch short, and a length that grew at every cut
                    # would pass any bound.
                    wanted = (stop - before) * SECONDS_PER_CHUNK / max(seconds, 1e-9)
                    length = int(np.clip(wanted, max(1, length // 4), 4 * length))

    # --- One stretch of updates ---

    def _advance(self, stop: int, pool: ThreadPoolExecutor, report: Reporter) -> None:
        threads = self.config.execution == "threads"
        while self.step < stop:
            live, reach = self._live(), self.feed.reaches(self.step, stop)
            work = [Work(self.traced[n], self.progress[n], self.feed.at(n, self.step)) for n in live]
            done = in_threads(work, reach, pool, one_core=self.config.one_core) if threads else stacked(work, reach)
            for number, now in zip(live, done, strict=True):
                self.progress[number] = now
                if not bool(now.finite):
                    report.say(_frozen(number, now))
            self.step = reach

    # --- What is written ---

    def _measure(self, report: Reporter) -> None:
        """Metrics, evaluations and critics, where this step is due for them."""
        # The matrices here are small, and the cores are taken: BLAS threads would only wait for each other.
        with _blas().limit(limits=1):
            self._measure_now(report)

    def _measure_now(self, report: Reporter) -> None:
        last = self.step == self.config.steps
        if last or self.step % self.config.metrics_every == 0:
            self._freeze_members_with_broken_weights(report)
            self.folder.append(self.folder.metrics, [self._metrics_of(number) for number in self._live()])
        if last or self.step % self.config.evaluate_every == 0:
            if self.evaluator is not None:
                self.folder.append(self.folder.evaluations, [self._evaluate(number) for number in self._live()])
            critics = [m.method.critic(now.learner) for m, now in zip(self.members, self.progress, strict=True)]
            self.folder.checkpoints.save(self.step, critics)

    def _freeze_members_with_broken_weights(self, report: Reporter) -> None:
        """An objective can stay finite while a weight that it does not read is not a number."""
        for number in self._live():
            now = self.progress[number]
            if not bool(all_finite(now.learner)):
                self.progress[number] = now._replace(finite=jnp.zeros((), bool))
                report.say(_frozen(number, now))

    def _metrics_of(self, number: int) -> dict[str, Any]:
        values = measure(*self.traced[number], self.progress[number], self.feed.probe(number))
        return {"step": self.step, "member": number, **values}

    def _evaluate(self, number: int) -> dict[str, Any]:
        assert self.evaluator is not None
        member, critic = self.members[number], self.members[number].method.critic(self.progress[number].learner)

        policy = Policy(self.traced[number][0], critic, self.spec)
        outcome = self.evaluator(policy, seed=member.seed, step=self.step, discount=member.method.discount)
        return {"step": self.step, "member": number, **outcome}

    def _save(self) -> None:
        self.folder.state.save(self.step, self.progress, keep=2, note=self.folder.written())
        self._write_results()
        self._write_status()

    def _write_results(self) -> None:
        if self.evaluator is not None:
            task = self.config.data.name
            rows = read_lines(self.folder.evaluations)
            members = [(self.members[row["member"]], row) for row in rows]
            write_results(
                self.folder.results,
                [
                    CheckpointResult(
                        m.algorithm, task, m.seed, row["step"], tuple(row["returns"]), row.get(NORMALISED_SCORE)
                    )
                    for m, row in members
                ],
            )

    def _write_status(self) -> None:
        diverged = {str(n): int(now.step) for n, now in enumerate(self.progress) if not bool(now.finite)}
        finished = self.step == self.config.steps
        write_json(self.folder.status, {"step": self.step, "finished": finished, "diverged": diverged})

    # --- Where it stands ---

    def _resume(self) -> tuple[int, list[Progress], list[str]]:
        """The newest whole state, with the files cut back to it; a fresh start where there is none."""
        critic = None if self.start is None else self.start.critic
        fresh = [begin(method, seed, self.spec, critic, regularizer) for method, regularizer, seed in self.traced]
        notes: list[str] = []
        unfit, lost = False, None
        for step in reversed(self.folder.state.steps()):
            whole = self.folder.state.intact(step)
            restored = self._restored(step, fresh) if whole else None
            if restored is None:
                unfit |= whole
                notes.append(f"The state of step {step:,} in {self.folder.path} is damaged; it is not used.")
                continue
            if (file := self.folder.damaged_lines(step)) is not None:
                lost = self.folder.advice(file, step)
                notes.append(f"{file} does not hold what was there at step {step:,}; that state is not used.")
                continue
            if damaged := self._damaged(step, restored):
                notes.append(f"{damaged} damaged; the state of step {step:,}, which is later, is not used.")
                continue
            self.folder.rewind(step, self.folder.seen_by_state(step))
            finished = step == self.config.steps
            place = f"step {step:,} of {self.folder.path}"
            notes.append(f"Nothing is left to do after {place}." if finished else f"Resuming from {place}.")
            return step, restored, notes
        if unfit:  # perhaps the work of another version of dr3, which is not thrown away unasked
            raise UserError(f"No state in {self.folder.state.folder} fits this run; remove that folder to start again.")
        if lost is not None:  # days of work perhaps, and a copy of the lines may be somewhere
            raise UserError(lost)
        # Whatever was measured at step 0 is measured again.
        self.folder.rewind(-1)
        # Copies, since an update takes over the arrays it is given: critic and target may be one array here.
        return 0, jax.tree.map(jnp.array, fresh), notes

    def _restored(self, step: int, like: list[Progress]) -> list[Progress] | None:
        """The state of `step`, None where it is not of this run's shapes, or of another step than its name says."""
        try:
            restored = jax.tree.map(jnp.array, self.folder.state.restore(step, like))
        except ValueError:
            return None
        reached = [int(now.step) == step or (int(now.step) < step and not bool(now.finite)) for now in restored]
        return restored if all(reached) else None

    def _damaged(self, step: int, progress: list[Progress]) -> str | None:
        """What is not whole of that which was written before the state of `step`: only its last lines can be torn."""
        for number in self.folder.checkpoints.steps():
            if number <= step and not self.folder.checkpoints.intact(number):
                return f"{self.folder.checkpoints.path(number)} is"
        live = [number for number, now in enumerate(progress) if bool(now.finite)]
        evaluated = self.evaluator is not None
        files = {
            self.folder.metrics: "metrics_every",
            **({self.folder.evaluations: "evaluate_every"} if evaluated else {}),
        }
        for file, cadence in files.items():
            at = step if step == self.config.steps else step - step % getattr(self.config, cadence)
            if self.folder.torn(file, at, live):
                return f"The lines of step {at:,} in {file} are"
        return None

    def _boundaries(self) -> list[int]:
        cadences = (self.config.metrics_every, self.config.evaluate_every)
        return [(self.step // every + 1) * every for every in cadences]

    def _live(self) -> list[int]:
        return [number for number, now in enumerate(self.progress) if bool(now.finite)]

    def _speed(self, updates: int, seconds: float) -> float:
        """Updates per second, all members together."""
        return updates * len(self._live()) / max(seconds, 1e-9)

    def _note(self) -> str:
        dead = len(self.members) - len(self._live())
        return f", {dead} diverged" if dead else ""


def _frozen(number: int, now: Progress) -> str:
    return f"Member {number} diverged: after {int(now.step):,} updates its loss or weights are not finite; frozen."


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()
