"""What a cure will train, said before it is done, within a budget of minutes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dr3.cores import available_cores
from dr3.cures.remedies import NONE, Treatment
from dr3.data.batch import Batch
from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.methods import Spec
from dr3.sweeps import Task
from dr3.training.loop import advance, begin
from dr3.training.metrics import probe_of

SECONDS = 0.3  # of updates, to tell how fast they are
FEWEST = 100  # updates that a budget must allow for
# Seconds of one core, measured with CQL and the default remedies on grid16smoothobs, and rounded up: what a program
# takes to compile in a worker (7.5), what a row takes once all are trained (3.8: the doctor, the estimate, the time of
# an update), and what reading, the speed of an update and the page take. The last two are no work for several cores.
COMPILING, ROW, STARTING = 9.0, 5.0, 10.0
DEARER = 1.5  # what an update with a remedy takes, in updates of the base method: the mean over the default ones
CHECKPOINTS = 10


@dataclass(frozen=True)
class CurePlan:
    """A grid over treatments and seeds."""

    data: str
    treatments: tuple[Treatment, ...]
    seeds: int
    steps: int
    env: str | None = "auto"
    episodes: int = 10
    first_steps: int | None = None  # updates of the plan that this one lengthens: evaluations come as often as in that

    def __post_init__(self) -> None:
        names = [one.name for one in self.treatments]
        if names.count(NONE) != 1 or len(set(names)) < len(names):
            raise UserError("The remedies must be different ones and hold none, which the others are measured against.")

    @property
    def base(self) -> Treatment:
        """The method as it is."""
        return next(one for one in self.treatments if one.name == NONE)

    @property
    def planned_first(self) -> int:
        return self.first_steps or self.steps

    @property
    def trained(self) -> list[Treatment]:
        """Those that need a training of their own: one of every compiled program, then those that find theirs compiled.

        Two workers that start with the same program would both compile it.
        """
        found: dict[Any, list[Treatment]] = {}
        for one in self.treatments:
            if one.rule is None:
                found.setdefault(one.program, []).append(one)
        return [
            *(several[0] for several in found.values()),
            *(one for several in found.values() for one in several[1:]),
        ]

    def task(self, treatment: Treatment) -> Task:
        """The run of a treatment; that of a rule is the base method's."""
        return Task(
            self.data,
            treatment.method,
            (treatment.regularizer,),
            tuple(range(self.seeds)),
            self.steps,
            env=self.env,
            episodes=self.episodes,
            metrics_every=max(1, self.planned_first // 20),
            evaluate_every=max(1, self.planned_first // CHECKPOINTS),
        )

    @property
    def titles(self) -> dict[str, str]:
        """What is trained, in the order it is begun: by the name of a task that of its treatment."""
        return {self.task(one).name: one.name for one in self.trained}

    @property
    def tasks(self) -> list[Task]:
        return [self.task(one) for one in self.trained]


def steps_within(minutes: float, treatments: Sequence[Treatment], seeds: int, seconds_per_update: float) -> int:
    """How many updates each member can make within a budget on all cores, with two digits that are not 0.

    Args:
        minutes: The budget.
        treatments: What is to be trained.
        seeds: Members of each.
        seconds_per_update: Of the base method, alone on a core.
    """
    trained = [one for one in treatments if one.rule is None]
    compiling = COMPILING * len({one.program for one in trained})
    alone = STARTING + ROW * len(treatments)
    each = DEARER * len(trained) * seeds * seconds_per_update  # of a step of all members
    steps = ((minutes * 60 - alone) * available_cores() - compiling) / each
    if steps < FEWEST:
        least = (alone + (compiling + FEWEST * each) / available_cores()) / 60
        raise UserError(
            f"{minutes:g} minutes are too few for {len(trained)} trainings of {seeds} seeds: give --minutes "
            f"{np.ceil(10 * least) / 10:g}, fewer --remedies or fewer --seeds."
        )
    digits = 10 ** (int(np.log10(steps)) - 1)
    return int(steps // digits * digits)


def seconds_per_update(treatment: Treatment, data: Transitions) -> float:
    """How long an update takes once it is compiled, on rows of the data, alone in this process.

    On a CPU these are seconds of a processor: what others do on the machine does not count.

    Args:
        treatment: What is trained.
        data: What it is trained on.
    """
    clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    method, regularizer, seed = jax.tree.map(jnp.asarray, (treatment.method, treatment.regularizer, np.uint32(0)))
    table = Batch.of(probe_of(treatment.method.prepare(data))).all_rows()
    spec = Spec.of(data, standardise=getattr(treatment.method, "standardise", False))
    progress, stop, chunk = begin(method, seed, spec, None, regularizer), 1, 8
    progress = jax.block_until_ready(advance(method, regularizer, seed, progress, table, jnp.int32(stop)))  # compiles
    fastest, enough = float("inf"), 3
    while True:
        began, stop = clock(), stop + chunk
        progress = jax.block_until_ready(advance(method, regularizer, seed, progress, table, jnp.int32(stop)))
        spent = clock() - began
        fastest = min(fastest, spent / chunk)  # others may have had the cache in between
        if spent > SECONDS / 3 and (enough := enough - 1) == 0:
            return fastest
        chunk = 2 * chunk if spent < SECONDS / 3 else chunk
