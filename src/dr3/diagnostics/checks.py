"""The signs of an unhealthy critic: each a condition on what was measured, its words, and what to try next.

A check sees one member: (T,) columns by name, over all checkpoints. It answers where its condition holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.instruments.stability import updates_until

Columns = dict[str, NDArray[np.float64]]
SPECTRUM_ROWS = 128  # of the eigenvalue problem, whose cost is their number cubed
RETURNS, RETURN_ERROR = "evaluation/return", "evaluation/standard_error"
# A fall in returns itself, and values that are wrong whatever the policy earns. Nothing has been shown to foretell a
# fall well, so all else is a note (docs/diagnose.md has the numbers).
VERDICTS = ("fall in returns", "divergence")
ABOUT_BOOTSTRAPPING = ("co-adaptation", "growing dot products", "unstable spectrum")


@dataclass(frozen=True)
class Thresholds:
    """From which point on something counts as a sign. Set by hand; docs/diagnose.md says how they did."""

    growth: float = 10.0
    """Co-adaptation: how many times feature dot products have grown …"""

    level: float = 2.0
    """… since a checkpoint from which the size of the mean Q has changed by no more than this factor."""

    ratio: float = 1.0
    """Co-adaptation: γ Σ φ·φ' / Σ φ·φ from which on linear TD does not converge (Proposition 3.2)."""

    outside: float = 0.05
    """Divergence: share of Q-values beyond what any policy could earn (each with 5 % of slack)."""

    rank_share: float = 0.25
    """Rank collapse: srank at most this share of its largest value at any earlier checkpoint, the initial one aside."""

    dead: float = 0.9
    """Dead features: share of the features that are zero on every row."""

    margin: float = 1e-4
    """Unstable spectrum: how far, relative to the largest modulus, an eigenvalue lies in the unstable half-plane. (That
    of all parameters; the last layer's alone is only noted.)"""

    fall: float = 0.7
    """Fall in returns: the mean of the last tries (three, or half of fewer than six) is below this share of the best
    such mean before, both counted from the lowest return of the run, and by more than two standard errors."""

    error_growth: float = 10.0
    """Generalisation: how many times the held-out TD error has grown since its smallest value."""


@dataclass(frozen=True)
class Sign:
    """Where a condition holds, and what to say about it at checkpoint number t."""

    name: str
    holds: NDArray[np.bool_]  # (T,)
    sentence: Callable[[int], str]
    evidence: Callable[[int], dict[str, Any]]

    @property
    def note(self) -> bool:
        """Worth a line, but no reason to call a critic unhealthy."""
        return self.name not in VERDICTS


def fall_in_returns(steps: NDArray[np.int64], of: Columns, limit: Thresholds) -> Sign:
    """A policy that earned more before: by the run's own evaluations, where it has some. Nothing says more."""
    returns = of[RETURNS]
    # Of each try's episodes; a single one, or an exact value, says nothing of its own error.
    errors = np.nan_to_num(of.get(RETURN_ERROR, np.zeros(len(returns))))
    tried = np.flatnonzero(np.isfinite(returns) & (steps > 0))
    low = np.nanmin(returns) if np.isfinite(returns).any() else 0.0
    holds, counts = np.zeros(len(returns), np.bool_), np.zeros(len(returns), np.int64)
    best, level = np.full(len(returns), np.nan), np.full(len(returns), np.nan)
    for place, t in enumerate(tried[1:], start=2):
        count = min(3, place // 2)  # so that the last and the best before may share nothing
        windows = np.lib.stride_tricks.sliding_window_view(tried[:place], count)
        means = returns[windows].mean(axis=1)
        spread = np.sqrt((errors[windows] ** 2).sum(axis=1)) / count
        top = int(np.argmax(means))
        counts[t], best[t], level[t] = count, means[top], means[-1]
        holds[t] = means[-1] - low < limit.fall * (means[top] - low)
        holds[t] &= means[top] - means[-1] > 2 * np.hypot(spread[top], spread[-1])

    def sentence(t: int) -> str:
        tries = {1: "single evaluations", 2: "means of two evaluations", 3: "means of three evaluations"}[
            int(counts[t])
        ]
        return f"Returns have fallen from {best[t]:.4g} to {level[t]:.4g} ({tries})."

    return Sign("fall in returns", holds, sentence, lambda t: {"was": best[t], "is": level[t]})


def co_adaptation(steps: NDArray[np.int64], of: Columns, limit: Thresholds) -> Sign:
    """Dot products that grow while Q does not, or a ratio at which linear TD cannot converge."""
    dots, ratio = of["features/dot_product"], of["features/co_adaptation"]
    since = _reference(dots, of.get("q/mean"), limit.level)
    growth = np.divide(dots, dots[since], out=np.ones_like(dots), where=dots[since] > 0)
    grown = growth >= limit.growth

    def sentence(t: int) -> str:
        if grown[t]:
            level = " while Q stayed level" if "q/mean" in of else ""
            grew = f"Feature dot products have grown {growth[t]:.0f}x since step {steps[since[t]]:,}"
            return f"{grew}{level}: co-adaptation."
        return (
            f"γ Σ φ·φ' is {ratio[t]:.2f} times Σ φ·φ: linear TD on these features does not converge (Proposition 3.2): "
            "co-adaptation."
        )

    def evidence(t: int) -> dict[str, Any]:
        return {"dot_product": dots[t], "growth": growth[t], "since": steps[since[t]], "ratio": ratio[t]}

    return Sign("co-adaptation", grown | (ratio >= limit.ratio), sentence, evidence)


def growing_products(steps: NDArray[np.int64], of: Columns, limit: Thresholds) -> Sign:
    """What the paper's figures show: dot products that only grow. A note, because Q may have grown with them: on
    MinAtar they grow in every run without DR3, and the returns rise all the same (docs/results/minatar.md).
    """
    dots, first = of["features/dot_product"], int(np.argmax(steps > 0))
    since = dots[first]
    growth = dots / since if since > 0 else np.ones_like(dots)

    def sentence(t: int) -> str:
        return (
            f"Feature dot products have grown {growth[t]:.0f}x since step {steps[first]:,}, to {dots[t]:.3g}: "
            "what DR3 is meant to prevent."
        )

    def evidence(t: int) -> dict[str, Any]:
        return {"dot_product": dots[t], "growth": growth[t], "since": steps[first]}

    grown = (growth >= limit.growth) & ~co_adaptation(steps, of, limit).holds
    return Sign("growing dot products", grown, sentence, evidence)


def divergence(steps: NDArray[np.int64], of: Columns, limit: Thresholds) -> Sign:
    """Q-values that no policy could earn."""
    outside, most, least = of["q/outside"], of["q/most"], of["q/least"]
    high, low = of["q/largest_return"], of["q/lowest_return"]

    def sentence(t: int) -> str:
        if not np.isfinite(of["q/mean"][t]):
            return "Q is no longer a finite number: divergence."
        if most[t] - high[t] >= low[t] - least[t]:
            return f"Q reaches {most[t]:.3g}, above the largest possible return, {high[t]:.3g}: divergence."
        return f"Q falls to {least[t]:.3g}, below the lowest possible return, {low[t]:.3g}: divergence."

    def evidence(t: int) -> dict[str, Any]:
        return {"outside": outside[t], "most": most[t], "least": least[t], "largest_return": high[t]}

    return Sign("divergence", outside > limit.outside, sentence, evidence)


def rank_collapse(steps: NDArray[np.int64], of: Columns, limit: Thresholds) -> Sign:
    """Features that use few of the directions they once used."""
    rank = of["rank/srank"]
    trained = np.where(steps > 0, rank, np.nan)
    best = np.fmax.accumulate(trained)

    def sentence(t: int) -> str:
        return f"srank has fallen from {best[t]:.0f} to {rank[t]:.0f}: rank collapse."

    return Sign(
        "rank collapse", rank <= limit.rank_share * best, sentence, lambda t: {"srank": rank[t], "was": best[t]}
    )


def dead_features(steps: NDArray[np.int64], of: Columns, limit: Thresholds) -> Sign:
    """Features that are zero on all the data."""
    dead = of["features/dead"]
    return Sign(
        "dead features",
        dead >= limit.dead,
        lambda t: f"{dead[t]:.0%} of the features are zero on every row: dead features.",
        lambda t: {"dead": dead[t]},
    )


def unstable_spectrum(steps: NDArray[np.int64], of: Columns, limit: Thresholds) -> Sign:
    """A direction in which TD-learning moves away from where it is, whatever the step size.

    K = (J - γJ')Jᵀ is, with the other sign, γG(X*, X) - G(X, X), whose largest eigenvalue Yue et al. (2023) call SEEM.
    It foretells that Q leaves its bounds, not that returns fall, so it is a note: it shows before most falls,
    and as often where none comes (docs/diagnose.md).
    """
    which = "all" if "spectrum/all/margin" in of else "last_layer"
    margin = of[f"spectrum/{which}/margin"]
    words = "all parameters" if which == "all" else "the last layer"

    means = "no step size makes TD-learning stable here"
    if which == "last_layer":
        means = "with features that stayed as they are, no step size would make TD-learning stable"

    holds = margin < -limit.margin

    def sentence(t: int) -> str:
        return (
            f"An eigenvalue of K = (J - γJ')Jᵀ over {words} lies in the unstable half-plane (margin {margin[t]:.1e}; "
            f"SEEM is positive): {means}.{_in_words(steps, of, which, holds, limit, t)}"
        )

    def evidence(t: int) -> dict[str, Any]:
        return {"margin": margin[t], "of": which, "forecast": _forecast(of, which, t)}

    return Sign("unstable spectrum", holds, sentence, evidence)


def _forecast(of: Columns, which: str, t: int) -> float:
    """After how many updates Q leaves its bounds by these eigenvalues; infinite where the step size is not known."""
    if "step_size" not in of:
        return float("inf")
    room = (of["q/largest_return"][t] - of["q/lowest_return"][t]) / max(np.sqrt(of["td/error_online"][t]), 1e-12)
    return updates_until(of[f"spectrum/{which}/smallest_real_part"][t], of["step_size"][t], SPECTRUM_ROWS, room)


def _in_words(
    steps: NDArray[np.int64], of: Columns, which: str, holds: NDArray[np.bool_], limit: Thresholds, t: int
) -> str:
    """The forecast, and beside it what came of the first one."""
    updates = _forecast(of, which, t)
    if not np.isfinite(updates):
        return ""
    text = f" By plain gradient steps of this size, Q leaves its bounds within about {updates:,.0f} updates."
    absent = np.flatnonzero(~holds[: t + 1])
    start = int(absent[-1]) + 1 if len(absent) else 0
    first, since = _forecast(of, which, start), int(steps[t] - steps[start])
    if since > first and of["q/outside"][t] <= limit.outside:
        text += f" At step {steps[start]:,} that was {first:,.0f}, and {since:,} updates later it has not."
    return text


def held_out_error(steps: NDArray[np.int64], of: Columns, limit: Thresholds) -> Sign:
    """A critic that predicts ever worse on episodes it has not seen."""
    error = of["td/held_out_error"]
    least = np.fmin.accumulate(error)

    def sentence(t: int) -> str:
        return f"The TD error on held-out episodes has grown {error[t] / least[t]:.0f}x from {least[t]:.3g}."

    holds = error >= limit.error_growth * least
    return Sign("held-out error", holds & (least > 0), sentence, lambda t: {"error": error[t], "was": least[t]})


# By name, each with the column it needs.
CHECKS: dict[str, tuple[Callable[[NDArray[np.int64], Columns, Thresholds], Sign], str]] = {
    "fall in returns": (fall_in_returns, RETURNS),
    "divergence": (divergence, "q/outside"),
    "co-adaptation": (co_adaptation, "features/dot_product"),
    "growing dot products": (growing_products, "features/dot_product"),
    "unstable spectrum": (unstable_spectrum, "spectrum/last_layer/margin"),
    "rank collapse": (rank_collapse, "rank/srank"),
    "dead features": (dead_features, "features/dead"),
    "held-out error": (held_out_error, "td/held_out_error"),
}


def signs(steps: NDArray[np.int64], of: Columns, limit: Thresholds) -> list[Sign]:
    """Every check whose columns were measured."""
    return [check(steps, of, limit) for check, needed in CHECKS.values() if needed in of]


def not_looked_at(of: Collection[str]) -> list[str]:
    """The names of the checks whose columns were not measured."""
    missing = [name for name, (_, needed) in CHECKS.items() if needed not in of]
    if "spectrum/last_layer/margin" in of and "spectrum/all/margin" not in of:
        missing.append("the spectrum over all parameters")
    return missing


def unhealthy_at(found: Sequence[Sign]) -> NDArray[np.bool_]:
    """At which checkpoints any sign shows that is more than a note: (T,)."""
    return np.any([sign.holds & (not sign.note) for sign in found], axis=0)


def _reference(dots: NDArray[np.float64], q: NDArray[np.float64] | None, level: float) -> NDArray[np.int64]:
    """For each checkpoint the earlier one with the smallest dot product at which Q was as large as now: (T,)."""
    since = np.arange(len(dots))
    for t in range(len(dots)):
        allowed = np.ones(t + 1, bool)
        if q is not None:
            size, now = np.abs(q[: t + 1]), np.abs(q[t])
            allowed = (size * level >= now) & (size <= level * now)
        allowed[t] = True
        since[t] = np.flatnonzero(allowed)[np.argmin(dots[: t + 1][allowed])]
    return since
