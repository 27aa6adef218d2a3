"""Measurements that stay in the run folder, each under a key that holds all it depends on."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dr3.data.npz import stored_arrays
from dr3.data.transitions import Transitions
from dr3.diagnostics import Measurements
from dr3.diagnostics.measure import training_data
from dr3.diagnostics.selection import fqe_of_runs
from dr3.errors import UserError
from dr3.files import refuse_link, written_whole
from dr3.runs import Runs
from dr3.runs.folder import PACKAGES

FQE_VALUE = "fqe/value"


class KeptMeasurement:
    """What was measured of one checkpoint as it is now: its file in the run folder, and the key that it must have.

    The key is of the weights, who learned them from what, what was measured, and the code that measures.
    """

    def __init__(self, runs: Runs, step: int, what: Literal["all", "last-layer", "fqe"]) -> None:
        self.step = step
        self.path = runs.path / "measurements" / f"{step:09d}{'' if what == 'all' else f'-{what}'}.npz"
        record = runs.config.to_json()
        content = [record["members"], record["data"], what, _code(), _code_of_plugins(runs)]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
        digest.update(runs.folder.checkpoints.path(step).read_bytes())
        self.key = digest.hexdigest()

    def read(self) -> Measurements | None:
        """None where nothing was measured, or something else."""
        try:
            stored = stored_arrays(self.path, "it is measured again.")
            if str(stored["key"]) != self.key:
                return None
            columns = dict(zip(stored["names"].tolist(), stored["values"], strict=True))
            return Measurements(np.array([self.step], np.int64), columns, int(stored["rows"]))
        except (UserError, KeyError, TypeError, ValueError):  # not there, or damaged: measure again
            return None

    def write(self, measured: Measurements) -> None:
        """Keep the numbers of this one step: (members, 1) for each name."""
        names, values = np.array(list(measured.columns)), np.stack(list(measured.columns.values()))
        # The run may be somebody else's: then a report measures each time.
        with suppress(OSError, UserError):
            refuse_link(self.path.parent)
            self.path.parent.mkdir(exist_ok=True)
            with written_whole(self.path) as unfinished, unfinished.open("wb") as file:
                np.savez(file, key=self.key, names=names, values=values, rows=measured.rows)


def kept_fqe(runs: Runs, steps: Sequence[int], data: Transitions | None) -> NDArray[np.float64]:
    """As `fqe_of_runs`, but only for the checkpoints of which no value is kept yet: (members, T)."""
    if data is not None:
        data = training_data(runs, data)  # another table is refused, whatever is kept
    kept = {step: KeptMeasurement(runs, step, "fqe") for step in steps}
    known = {step: found for step, place in kept.items() if (found := place.read()) is not None}
    missing = [step for step in steps if step not in known]
    if missing:
        for step, values in zip(missing, fqe_of_runs(runs, missing, data).T, strict=True):
            columns, rows = {FQE_VALUE: values[:, None]}, runs.config.data.rows
            known[step] = Measurements(np.array([step], np.int64), columns, rows)
            kept[step].write(known[step])
    return np.concatenate([known[step].columns[FQE_VALUE] for step in steps], axis=1)


@cache
def _code() -> str:
    """All of this package, whatever its version says, and the versions of what it computes with."""
    digest = hashlib.sha256(json.dumps([metadata.version(name) for name in PACKAGES]).encode())
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _code_of_plugins(runs: Runs) -> list[str]:
    """The file of every class of the members that is not in this package."""
    classes = {type(one) for member in runs.members for one in (member.method, member.regularizer) if one is not None}
    files = {sys.modules[cls.__module__].__file__ for cls in classes if not cls.__module__.startswith("dr3.")}
    return sorted(hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files if file)
