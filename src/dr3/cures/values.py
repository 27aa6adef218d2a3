"""What the policies of every remedy are worth, by the log alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.ope import bootstrap_interval, evaluate
from dr3.ope.direct import StateTable
from dr3.stats import Interval

Policies = Mapping[str, Sequence[Callable[[Any], Any]]]  # of every remedy, one for each seed


def cheap(data: Transitions, discount: float) -> bool:
    """Whether fitted Q evaluation takes a moment: the log knows few states, and is solved directly."""
    return discount < 1 and StateTable.of(data) is not None


def estimated_values(policies: Policies, data: Transitions, discount: float) -> dict[str, Interval]:
    """The mean over seeds of what fitted Q evaluation finds, with a 95 % interval over bootstraps of the episodes.

    A remedy of which one policy has no value is left out.
    """
    named = {f"{name} {seed}": one for name, several in policies.items() for seed, one in enumerate(several)}
    probe, able = data.observations[:1], {}
    for name, several in policies.items():
        try:
            for one in several:
                one(np.asarray(probe))
        except UserError:  # a critic that is not finite has no policy
            continue
        able |= {f"{name} {seed}": named[f"{name} {seed}"] for seed in range(len(several))}
    if not able:
        return {}
    fit = evaluate(able, data, discount=discount, importance=False).fit
    places = {name: [place for place, key in enumerate(able) if key.rpartition(" ")[0] == name] for name in policies}
    found = {
        name: bootstrap_interval(float(fit.values[mine].mean()), fit.bootstrapped[:, mine].mean(axis=1), fit.episodes)
        for name, mine in places.items()
        if mine
    }
    return {name: one for name, one in found.items() if np.isfinite(one.estimate)}


def policies_of(runs: Any, steps: Sequence[int]) -> list[Callable[[Any], Any]]:
    """Every member's, each at its own checkpoint."""
    return [partial(runs.policy, member=number, step=int(step)) for number, step in enumerate(steps)]
