"""Starting from what another run has learned: is a good solution kept? (appendix A.7, figure "stability")"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from dr3.errors import UserError
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
        """`RUN@STEP`, or `RUN@STEP:MEMBER` where the run has several members."""
        run, at, place = word.rpartition("@")
        step, colon, member = place.partition(":")
        if not at or not run or not step.isdigit() or (colon and not member.isdigit()):
            raise UserError(f"A start is written RUN@STEP or RUN@STEP:MEMBER, not {word!r}.")
        runs = Runs(run)
        if not colon and len(runs) > 1:
            raise UserError(f"{run} has {len(runs)} members; say which one to start from, as in {word}:0.")
        number = int(member or 0)
        if number >= len(runs):
            raise UserError(f"{run} has {len(runs)} members, numbered from 0; there is no member {number}.")
        return cls(run, int(step), number, runs.critics(int(step))[number])

    def describe(self) -> dict[str, Any]:
        """What a configuration keeps of it. The fingerprint is what counts: the other run may move."""
        return {"run": self.run, "step": self.step, "member": self.member, "fingerprint": self.fingerprint()}

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


def _shapes(critic: Any) -> dict[str, tuple[int, ...]]:
    """The shape of every array by its name, such as trunk.stack[0].weight."""
    leaves = jax.tree_util.tree_leaves_with_path(critic)
    return {jax.tree_util.keystr(path).lstrip("."): leaf.shape for path, leaf in leaves}
