"""Starting from what another run has learned: is a good solution kept? (appendix A.7, figure "stability")"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from dr3.errors import UserError
from dr3.runs.checkpoints import leaves_by_name
from dr3.runs.config import StartConfig
from dr3.runs.outcomes import RETURN
from dr3.runs.runs import Runs


@dataclass(frozen=True)
class Start:
    """The critic of one member of a run at one of its checkpoints."""

    run: str
    step: int
    member: int
    critic: Any

    @classmethod
    def read(cls, word: str) -> Start:
        """`RUN@STEP`, or `RUN@STEP:MEMBER` where the run has several members; `best` is a step too.

        That is the checkpoint with the highest return when it was tried, the untrained one left out.
        """
        run, at, place = word.rpartition("@")
        step, colon, member = place.partition(":")
        digits = "[0-9]{1,12}"  # not what Python calls digits: ² is one of them
        if (
            not at
            or not run
            or not re.fullmatch(f"{digits}|best", step)
            or (colon and not re.fullmatch(digits, member))
        ):
            raise UserError(f"A start is written RUN@STEP or RUN@STEP:MEMBER, not {word!r}.")
        runs = Runs(run)
        if not colon and len(runs) > 1:
            raise UserError(f"{run} has {len(runs)} members; say which one to start from, as in {word}:0.")
        number = int(member or 0)
        if number >= len(runs):
            raise UserError(f"{run} has {len(runs)} members, numbered from 0; there is no member {number}.")
        chosen = _best(runs, number) if step == "best" else int(step)
        return cls(run, chosen, number, runs.critics(chosen)[number])

    @property
    def config(self) -> StartConfig:
        """What a configuration keeps of it."""
        return StartConfig(self.run, self.step, self.member, self.fingerprint())

    def fingerprint(self) -> str:
        """SHA-256 over the weights."""
        total = hashlib.sha256()
        for leaf in jax.tree.leaves(self.critic):
            total.update(f"{leaf.dtype}{leaf.shape}".encode())
            total.update(np.asarray(leaf).tobytes())
        return total.hexdigest()

    def check_fits(self, wanted: Any, method: str) -> None:
        """Refuse a critic of another kind or size than the `wanted` one, of which only shapes are looked at."""
        place = f"{self.run}@{self.step}:{self.member}"
        saved, needed = _shapes(self.critic), _shapes(wanted)
        for name in saved if saved.keys() == needed.keys() else ():
            if saved[name] != needed[name]:
                raise UserError(
                    f"The critic of {place} does not fit: its {name} has the shape {saved[name]}, and {method} here "
                    f"needs {needed[name]}; train with the settings of that run."
                )
        if jax.tree.structure(self.critic) != jax.tree.structure(wanted):
            raise UserError(f"The critic of {place} is of another kind of network than the one {method} is to train.")


def _best(runs: Runs, member: int) -> int:
    saved = set(runs.checkpoints)
    returns = runs.evaluations.get(RETURN)
    tried = [] if returns is None else zip(runs.evaluation_steps.tolist(), returns[member].tolist(), strict=True)
    found = [(value, -step) for step, value in tried if step in saved and step > 0 and value == value]
    if not found:
        raise UserError(f"{runs.path} has no checkpoint that was evaluated; say from which step to start.")
    return -max(found)[1]  # the earliest of equal ones


def _shapes(critic: Any) -> dict[str, tuple[int, ...]]:
    return {name: leaf.shape for name, leaf in leaves_by_name(critic).items()}
