"""The policies of runs that an estimate or a choice is about: every member at every checkpoint, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from dr3.data.transitions import Transitions
from dr3.diagnostics.health import label_of
from dr3.methods import Spec
from dr3.runs import Runs
from dr3.training.evaluation import Policy
from dr3.training.metrics import PROBE_SIZE


@dataclass(frozen=True)
class Candidate:
    """One member of one run at one checkpoint."""

    runs: Runs
    run: int  # its number among the runs that are compared
    member: int
    step: int

    @property
    def name(self) -> str:
        """`runs/first@5000:1`, as `dr3 play` and `--init-from` take it."""
        return f"{self.runs.path}@{self.step}:{self.member}"

    @property
    def label(self) -> str:
        """`dqn, regularizer none, seed 0, step 5,000`."""
        return f"{label_of(self.runs, self.member)}, step {self.step:,}"

    @property
    def diverged(self) -> bool:
        """Whether training had stopped by then: what was saved since are the weights whose loss was not finite."""
        since = self.runs.status["diverged"].get(str(self.member))
        return since is not None and self.step >= since


def candidates_of(
    opened: Sequence[Runs], steps: Sequence[int] | None = None, member: int | None = None
) -> list[Candidate]:
    """Every member at every checkpoint after the initial one, run by run, or those asked for."""
    return [
        Candidate(runs, number, one, step)
        for number, runs in enumerate(opened)
        for step in runs.checkpoints
        if step > 0 and (steps is None or step in steps)
        for one in range(len(runs))
        if member is None or member == one
    ]


def policies_of(candidates: Sequence[Candidate], data: Transitions) -> tuple[dict[str, Policy], dict[str, str]]:
    """The policies by name, and why some have none: what a critic does whose values are not finite is chance."""
    policies: dict[str, Policy] = {}
    without: dict[str, str] = {}
    critics: dict[tuple[int, int], list[Any]] = {}
    few = np.asarray(data.observations[:PROBE_SIZE])
    for one in candidates:
        key = (one.run, one.step)
        if key not in critics:
            critics = {key: one.runs.critics(one.step)}  # the candidates of a checkpoint come one after another
        critic, method = critics[key][one.member], one.runs.members[one.member].method
        policy = Policy(method, critic, Spec.of(data))
        if one.diverged:
            without[one.name] = "its training had diverged"
        elif not np.isfinite(method.values(critic, jnp.asarray(few), jnp.asarray(policy(few)))).all():
            without[one.name] = "its values are not finite"
        else:
            policies[one.name] = policy
    return policies, without
