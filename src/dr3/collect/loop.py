"""One loop for all that is collected: progress, saving, stopping, resuming, and the folder beside an unfinished file.

What differs is a `Collector`: an agent that learns while it acts, or a script.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dr3.data.batch import Batch
from dr3.data.convert import ENDINGS
from dr3.data.d4rl import hdf5
from dr3.errors import UserError
from dr3.files import check_file, read_json, write_json
from dr3.hyperparameters import to_json
from dr3.methods import DQN, SAC
from dr3.progress import Reporter, reporter
from dr3.regularizers import Regularizer, check_regularizer
from dr3.runs.checkpoints import Checkpoints
from dr3.runs.folder import RunFolder
from dr3.runs.interruption import Interruption, watched
from dr3.seeds import check_seed

REPORT_INTERVAL = 1.0  # seconds
SAVE_INTERVAL = 60.0  # seconds


class Collector(ABC):
    """Makes `total` steps (or episodes) by acting, and files of them; until then all is kept in `folder`.

    `settings` are what makes a collection the same as another: only the same one is gone on with.
    """

    unit = "steps"

    def __init__(self, title: str, total: int, settings: dict[str, Any], folder: Path, files: Sequence[Path]) -> None:
        self.title, self.total, self.settings, self.folder, self.files = title, total, settings, folder, files

    @abstractmethod
    def resume(self) -> int:
        """Begin, or go on from what the folder holds of this collection: how many steps that is."""

    @abstractmethod
    def advance(self) -> int:
        """Act to the next place where everything can be saved: how many steps have been made by then."""

    @abstractmethod
    def write(self) -> Any:
        """All steps are made: write the files, and return what the caller gets."""

    def save(self) -> None:  # noqa: B027 (optional)
        """Keep everything so far in the folder; nothing to do where `advance` has kept it."""

    def note(self) -> str:
        """What to add to the line of progress."""
        return ""

    def close(self) -> None:  # noqa: B027 (optional)
        """Let go of the world."""


class OnlineAgent(Collector):
    """Learns while it acts. Its state is a pytree of arrays, of which the last two are kept in the folder."""

    state: Any

    def __init__(
        self,
        title: str,
        world: Any,
        *,
        steps: int,
        out: str | Path,
        seed: int,
        method: DQN | SAC,
        schedule: Any,
        regularizer: Regularizer | None = None,
        endings: Sequence[str],
    ) -> None:
        self.world, self.steps, self.path, self.seed, self.schedule = world, steps, Path(out), seed, schedule
        schedule.check()
        check_target(self.path)
        check_seed(seed)
        if method.batch_size < 1:
            raise UserError("batch_size must be at least 1: a replay that grows has no full table to learn from.")
        if steps < 1:
            raise UserError(f"steps must be at least 1, not {steps}.")
        if regularizer is not None:
            check_regularizer(regularizer)
        check_ending(self.path, endings)
        settings = {"world": world.name, "steps": steps, "seed": seed, "method": to_json(method)}
        settings |= {"schedule": dataclasses.asdict(schedule), "regularizer": to_json(regularizer)}
        super().__init__(f"{title} in {world.name}", steps, settings, folder_beside(self.path), [self.path])
        self.batch_size, self.discount = method.batch_size, float(method.discount)
        numbers = method, regularizer, np.uint32(seed)
        self.method, self.regularizer, self.number = jax.tree.map(jnp.asarray, numbers)

    @abstractmethod
    def start(self) -> Any:
        """The state before the first step."""

    @abstractmethod
    def made(self) -> int:
        """Steps made so far."""

    def resume(self) -> int:
        self.states = Checkpoints(self.folder / "state")
        self.state = self.start()
        stored = newest(self.states, self.state)
        if stored is not None:
            self.state = jax.tree.map(_like, self.state, stored)
        return self.made()

    def save(self) -> None:
        self.states.save(self.made(), self.state, keep=2)


def _like(fresh: Any, stored: Any) -> Any:
    """On the device where it was there. A copy: compiled calls take over the arrays that they are given."""
    return jnp.array(stored) if isinstance(fresh, jax.Array) else stored


def newest(states: Checkpoints, like: Any) -> Any:
    """The newest state that is undamaged, in the structure of `like`; None where there is none."""
    for step in filter(states.intact, reversed(states.steps())):
        with suppress(ValueError):  # damaged all the same
            return states.restore(step, like)
    return None


def collect(collector: Collector, *, progress: bool) -> Any:
    """Run a collector to its end, and remove its folder once it has written its files.

    Ctrl-C or SIGTERM saves and stops. The same call with the same settings goes on from there.
    """
    with unfinished(collector.folder, collector.settings, *collector.files), closing(collector):
        made = collector.resume()
        with (
            reporter(collector.title, made, collector.total, show=progress, unit=collector.unit) as report,
            watched() as stopping,
        ):
            if 0 < made < collector.total:
                report.say(f"Resuming from {collector.unit.removesuffix('s')} {made:,}.")
            _run(collector, made, report, stopping)
        return collector.write()


def _run(collector: Collector, made: int, report: Reporter, stopping: Interruption) -> None:
    reported, reported_at = made, time.monotonic()
    saved_at = reported_at
    while made < collector.total:
        made = collector.advance()
        now, ended, stop = time.monotonic(), made >= collector.total, stopping.signal is not None
        if ended or stop or now - reported_at > REPORT_INTERVAL:
            speed = (made - reported) / max(now - reported_at, 1e-9)
            report.at(min(made, collector.total), per_second=speed, note=collector.note())
            reported, reported_at = made, now
        if stop or now - saved_at > SAVE_INTERVAL:
            collector.save()
            saved_at = time.monotonic()
        if stop and not ended:
            report.say(f"Stopped after {made:,} {collector.unit}, all saved; the same command goes on from there.")
            stopping.leave()


def folder_beside(path: Path) -> Path:
    """Where a collection is kept that will be the file `path`."""
    return path.with_name(f"{path.name}.unfinished")


@contextmanager
def unfinished(folder: Path, settings: dict[str, Any], *files: Path) -> Generator[None]:
    """Hold the folder of a collection against a second start of it; when all `files` are written, the folder goes.

    One that is there must be of the same collection: its settings are compared.
    """
    run = RunFolder(folder)
    with run.locked():
        if run.config.exists():
            _check_same(folder, read_json(run.config), settings)
        else:
            try:
                for file in files:
                    check_target(file)  # also of a twin that came to its end just now
            except UserError:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            write_json(run.config, settings)
        yield
        shutil.rmtree(folder)


def _check_same(folder: Path, stored: dict[str, Any], settings: dict[str, Any]) -> None:
    for key, value in json.loads(json.dumps(settings)).items():
        if stored.get(key) != value:
            raise UserError(
                f"{folder} holds an unfinished collection with another {key} ({stored.get(key)!r}, not {value!r}); "
                "choose another file, or remove that folder."
            )


def check_target(path: Path) -> None:
    """A file that is not there yet, in a folder that is or can be made (`unfinished` makes it)."""
    if path.exists():
        raise UserError(f"{path} is there already; remove it or choose another name.")
    check_file(path)


def check_ending(path: Path, endings: Sequence[str] = tuple(ENDINGS)) -> None:
    """A name that says in which format a table is to be written, one that can be written here; "" is a folder."""
    if path.suffix not in endings:
        formats = [ending or "a folder (a name without an ending)" for ending in endings]
        raise UserError(f"{path}: this data is written as {' or '.join(formats)}; give the file such an ending.")
    if ENDINGS.get(path.suffix) == "d4rl":
        hdf5(str(path))  # hours later it would be too late to miss it


def check_schedule(schedule: Any, *counts: str, probability: str | None = None) -> None:
    """Fields of a schedule that are numbers of something, and one that is a probability."""
    for name in counts:
        if getattr(schedule, name) < 1:
            raise UserError(f"{name} must be at least 1, not {getattr(schedule, name)}.")
    if probability is not None and not 0 <= getattr(schedule, probability) <= 1:
        raise UserError(f"{probability} is a probability, not {getattr(schedule, probability)}.")


def online_batch(observations: Any, actions: Any, rewards: Any, next_observations: Any, terminals: Any) -> Batch:
    """What an agent that learns while it acts draws: it knows neither the a' that was taken nor the return."""
    return Batch(
        observations=observations,
        actions=actions,
        rewards=rewards,
        next_observations=next_observations,
        terminals=terminals.astype(jnp.float32),
        next_actions=jnp.zeros_like(actions),
        returns=jnp.zeros(len(rewards)),
        next_behavior=None,
    )
