"""The folder beside a file that is still being collected."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dr3.data.convert import ENDINGS
from dr3.data.d4rl import hdf5
from dr3.errors import UserError
from dr3.files import check_file, read_json, write_json
from dr3.hyperparameters import to_json
from dr3.methods import DQN, SAC
from dr3.runs.folder import RunFolder
from dr3.seeds import check_seed


def folder_beside(path: Path) -> Path:
    """Where a collection is kept that will be the file `path`."""
    return path.with_name(f"{path.name}.unfinished")


def asked_online(world: str, *, steps: int, seed: int, method: DQN | SAC, schedule: Any) -> dict[str, Any]:
    """What makes a collection by an agent that learns while it acts the same as another."""
    parts = {"method": to_json(method), "schedule": dataclasses.asdict(schedule)}
    return {"world": world, "steps": steps, "seed": seed, **parts}


@contextmanager
def collection(folder: Path, asked: dict[str, Any], *files: Path) -> Generator[None]:
    """Hold the folder of a collection against a second start of it; when all `files` are written, the folder goes.

    One that is there must be of the same collection: what it holds is gone on with.
    """
    run = RunFolder(folder)
    with run.locked():
        if run.config.exists():
            _check_same(folder, read_json(run.config), asked)
        else:
            try:
                for file in files:
                    check_target(file)  # also of a twin that came to its end just now
            except UserError:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            write_json(run.config, asked)
        yield
        shutil.rmtree(folder)


def _check_same(folder: Path, stored: dict[str, Any], asked: dict[str, Any]) -> None:
    for key, value in json.loads(json.dumps(asked)).items():
        if stored.get(key) != value:
            raise UserError(
                f"{folder} holds an unfinished collection whose {key} is another ({stored.get(key)!r}, not {value!r}); "
                "choose another file, or remove that folder."
            )


def check_target(path: Path) -> None:
    """A file that is not there yet, in a folder that is or can be made (`collection` makes it)."""
    if path.exists():
        raise UserError(f"{path} is there already; remove it or choose another name.")
    check_file(path)


def check_table(path: Path) -> None:
    """A name that says in which format a table is to be written, one that can be written here."""
    if path.suffix not in ENDINGS:
        raise UserError(f"{path}: data is written as {' or '.join(ENDINGS)}; give the file such an ending.")
    if ENDINGS[path.suffix] == "d4rl":
        hdf5(str(path))  # hours later it would be too late to miss it


def check_schedule(schedule: Any, *counts: str, probability: str | None = None) -> None:
    """Fields of a schedule that are numbers of something, and one that is a probability."""
    for name in counts:
        if getattr(schedule, name) < 1:
            raise UserError(f"{name} must be at least 1, not {getattr(schedule, name)}.")
    if probability is not None and not 0 <= getattr(schedule, probability) <= 1:
        raise UserError(f"{probability} is a probability, not {getattr(schedule, probability)}.")


def check_online(path: Path, *, steps: int, seed: int, method: DQN | SAC) -> None:
    """What an agent that learns while it acts can begin with."""
    check_target(path)
    method.check()
    check_seed(seed)
    if method.batch_size < 1:
        raise UserError("batch_size must be at least 1: a replay that grows has no whole table to learn from.")
    if steps < 1:
        raise UserError(f"steps must be at least 1, not {steps}.")
