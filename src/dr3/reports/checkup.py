"""The doctor's measurements of a run, each checkpoint measured once: a run that goes on only adds new ones, and a
report that is written again none."""

from __future__ import annotations

from typing import Any

import numpy as np

from dr3.data.transitions import Transitions
from dr3.diagnostics import Health, Measurements, measure
from dr3.diagnostics.health import judge_runs
from dr3.diagnostics.measure import training_data
from dr3.reports.kept import KeptMeasurement
from dr3.runs import Runs


class Checkup:
    """What has been measured so far of the run in one folder.

    `gradients` adds the spectrum over all parameters, which takes longest by far.
    """

    def __init__(self, data: Transitions | None = None, *, gradients: bool = True) -> None:
        self.gradients = gradients
        self._given = data
        self._forget()

    def __len__(self) -> int:
        """How many checkpoints have been measured."""
        return len(self._measured)

    def missing(self, runs: Runs) -> list[int]:
        """The checkpoints that have not been measured yet."""
        self._notice(runs)
        return [step for step in runs.checkpoints if step not in self._measured]

    def measure(self, runs: Runs, step: int) -> None:
        """Measure every member at one checkpoint, or recall it. UserError where data are needed and cannot be had."""
        self._notice(runs)
        kept = KeptMeasurement(runs, step, "all" if self.gradients else "last-layer")
        found = kept.read()
        if self._data is None and (found is None or self._given is not None):
            self._data = training_data(runs, self._given)
        if found is None:
            found = measure(runs, self._data, steps=[step], gradients=self.gradients)
            kept.write(found)
        self._measured[step] = found

    def health(self, runs: Runs) -> Health | None:
        """The verdicts at the last checkpoint that was measured; None before there is one."""
        self._notice(runs)
        if not self._measured:
            return None
        # A copy: another thread may be adding the next one.
        parts = [part for _, part in sorted(self._measured.copy().items())]
        columns = {name: np.concatenate([part.columns[name] for part in parts], axis=1) for name in parts[0].columns}
        steps = np.concatenate([part.steps for part in parts])
        return judge_runs(runs, Measurements(steps, columns, parts[0].rows))

    def _notice(self, runs: Runs) -> None:
        """Start over where the folder holds another run than before."""
        identity = (runs.config.members, runs.config.data)
        if identity != self._identity:
            self._forget()
            self._identity = identity

    def _forget(self) -> None:
        self._identity: Any = None
        self._data: Transitions | None = None
        self._measured: dict[int, Measurements] = {}
