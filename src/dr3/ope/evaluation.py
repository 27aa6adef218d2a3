"""What policies are worth, judged by a log alone: every estimator side by side, and the logged policy as the bar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from dr3.data.transitions import DiscreteActions, Transitions
from dr3.errors import UserError
from dr3.files import for_json
from dr3.hyperparameters import within
from dr3.ope.acting import Acting, PolicyFunction
from dr3.ope.behavior import Behavior, behavior_of
from dr3.ope.fqe import FQE, Fit
from dr3.ope.importance import (
    Episodes,
    bootstrap_interval,
    doubly_robust,
    effective_sample_size,
    mean_interval,
    per_decision,
    weighted,
)
from dr3.stats import Interval

ESTIMATORS = {
    "fqe": "fitted Q evaluation: a critic fitted for this policy alone",
    "dr": "doubly robust: that critic, corrected by weighted errors",
    "wis": "weighted per-decision importance sampling",
    "is": "per-decision importance sampling",
}
LEAST_EPISODES = 10  # effective ones, below which a mean of weighted episodes has no interval to believe in
NO_DENSITY = "a policy that takes one action of a continuum has no probability of a logged one"


@dataclass(frozen=True)
class PolicyValue:
    """One policy: its value by every estimator, and how much the log has to say of it."""

    name: str
    estimates: dict[str, Interval]  # by the names of `ESTIMATORS`; what cannot be estimated is left out
    reasons: dict[str, str]  # why one has no value
    gain: Interval  # by fqe: how much more than the logged policy, both from the same bootstraps
    effective_episodes: float  # as how many episodes of its own the log counts; NaN where that is not known
    overlap: float  # mean over logged states of Σ_a min(π(a|s), β(a|s)); NaN likewise


@dataclass(frozen=True)
class Evaluation:
    """All of them, and what they are measured against."""

    policies: list[PolicyValue]
    logged: Interval  # what the policy that logged is worth
    discount: float
    rows: int
    episodes: int
    cut: int  # how many episodes were cut: importance sampling knows nothing of what came after
    how: str  # fitted Q evaluation was done
    behavior: str  # how the policy that logged is known
    fit: Fit = field(repr=False)

    def difference(self, first: int, second: int) -> Interval:
        """How much more one policy is worth than another, by fqe: from the same bootstraps of the episodes."""
        values = self.fit.bootstrapped
        with np.errstate(invalid="ignore"):
            between = values[:, first] - values[:, second]
            estimate = float(self.fit.values[first] - self.fit.values[second])
        return bootstrap_interval(estimate, between, self.episodes)

    def to_json(self) -> dict[str, Any]:
        """Everything but the fit, as JSON can hold it."""
        return {
            "value": "expected discounted return from the log's first states",
            "discount": self.discount,
            "rows": self.rows,
            "episodes": self.episodes,
            "cut_episodes": self.cut,
            "fqe": self.how,
            "behavior": self.behavior,
            "logged": _plain(self.logged),
            "policies": [
                {
                    "policy": one.name,
                    **{name: _plain(found) for name, found in one.estimates.items()},
                    "gain": _plain(one.gain),
                    "effective_episodes": for_json(one.effective_episodes),
                    "overlap": for_json(one.overlap),
                    "no_value": one.reasons,
                }
                for one in self.policies
            ],
        }


def evaluate(
    policies: Mapping[str, PolicyFunction],
    data: Transitions,
    *,
    discount: float,
    fqe: FQE | None = None,
    importance: bool = True,
) -> Evaluation:
    """Estimate the expected discounted return of policies from the log's first states, with 95 % intervals.

    Args:
        policies: By name, functions from observations (n, *shape) to what the policy does: (n,) actions or (n, A)
            probabilities where they are discrete, (n, size) actions where they are continuous.
        data: The log; best one that the policies were not trained on.
        discount: γ.
        fqe: How fitted Q evaluation is done; None is its defaults.
        importance: Weigh episodes too (`is`, `wis`, `dr`), which for many policies takes a while longer.

    Returns:
        Every policy by every estimator, in the order given, and the value of the policy that logged.
    """
    if not policies:
        raise UserError("There is no policy to evaluate.")
    if not isinstance(discount, Real) or isinstance(discount, bool):
        raise UserError(f"discount must be a number, not {discount!r}.")
    within("discount", float(discount), 0, 1)
    if not isinstance(fqe, FQE | None):
        raise UserError(f"fqe is one such as dr3.ope.FQE(), or None, not {fqe!r}.")
    behavior = behavior_of(data)
    acting = Acting.of(policies, data).with_logged(data, behavior.following)
    fit = (fqe or FQE())(acting, data, discount)
    logged, ends = _logged_value(data, fit, discount)
    one = Episodes.of(data.rewards, np.ones(len(data)), data.episodes)
    made = Evaluation([], logged, discount, len(data), len(one.lengths), ends, fit.how, behavior.how, fit)
    for number, name in enumerate(policies):
        found = bootstrap_interval(float(fit.values[number]), fit.bootstrapped[:, number], fit.episodes)
        reasons = {} if (why := fit.reasons[number]) is None else {"fqe": why}
        estimates, size, overlap = {"fqe": found}, float("nan"), float("nan")
        if behavior.taken is None:
            reasons |= dict.fromkeys(("dr", "wis", "is"), NO_DENSITY)
        elif importance:
            weighed, size, overlap = _weighed(acting, number, behavior, data, fit, discount)
            if size < LEAST_EPISODES:
                few = f"the log counts as {size:.2g} episodes of this policy, and {LEAST_EPISODES} are needed"
                reasons |= dict.fromkeys(weighed, few)
            elif why is not None:  # there is no critic to correct
                reasons["dr"] = why
            estimates |= {name: of for name, of in weighed.items() if name not in reasons}
        gain = made.difference(number, len(policies))
        made.policies.append(PolicyValue(name, estimates, reasons, gain, size, overlap))
    return made


def _weighed(
    acting: Acting, number: int, behavior: Behavior, data: Transitions, fit: Fit, discount: float
) -> tuple[dict[str, Interval], float, float]:
    """The estimates that weigh episodes, how many episodes that leaves, and the overlap."""
    assert isinstance(data.action_space, DiscreteActions)
    assert behavior.taken is not None
    assert behavior.probabilities is not None
    policy = acting.probabilities(number, data.action_space.count)
    ratios = policy[np.arange(len(data)), data.actions] / behavior.taken
    episodes = Episodes.of(data.rewards, ratios, data.episodes)
    columns = (fit.q[:, number], fit.v[:, number], fit.v_next[:, number])
    estimates = {
        "dr": doubly_robust(episodes, discount, *columns, data.terminals),
        "wis": weighted(episodes, discount),
        "is": per_decision(episodes, discount),
    }
    overlap = float(np.minimum(policy, behavior.probabilities).sum(axis=1).mean())
    return estimates, effective_sample_size(episodes), overlap


def _logged_value(data: Transitions, fit: Fit, discount: float) -> tuple[Interval, int]:
    """The mean of the logged returns; where an episode was cut, its own critic stands for what came after."""
    episodes = Episodes.of(data.rewards, np.ones(len(data)), data.episodes)
    last = np.cumsum(episodes.lengths) - 1
    cut = ~data.terminals[last]
    after = np.where(cut, np.nan_to_num(fit.v_next[:, -1])[last], 0.0)
    powers = discount ** np.arange(episodes.rewards.shape[1])
    returns = episodes.rewards @ powers + discount**episodes.lengths * after
    return mean_interval(returns), int(cut.sum())


def _plain(of: Interval) -> list[float | None]:
    return [for_json(value) for value in (of.estimate, of.lower, of.upper)]
