"""The theorem checks itself: every claim with the number that was measured."""

from __future__ import annotations

from collections.abc import Callable

from dr3.theory.checks.lemmas import four_ways, lemma_c1, lemma_c2, twenty_steps
from dr3.theory.checks.outcome import Effort, TheoryCheck
from dr3.theory.checks.proposition import gridworld_features, random_features
from dr3.theory.checks.theorem import in_and_out_of_sample, theorem_31
from dr3.theory.problem import float64

CHECKS: dict[str, Callable[[Effort], list[TheoryCheck]]] = {
    "Lemma C.1": lemma_c1,
    "Lemma C.2": lemma_c2,
    "Σ*, four ways": four_ways,
    "k = 20 steps": twenty_steps,
    "Theorem 3.1": theorem_31,
    "in sample against out of sample": in_and_out_of_sample,
    "Proposition 3.2 on random features": random_features,
    "Proposition 3.2 on gridworld features": gridworld_features,
}


def run_checks(
    effort: Effort | None = None, *, announce: Callable[[str], None] = lambda title: None
) -> list[TheoryCheck]:
    """All of them in float64; `announce` is called with each title before its check starts."""
    results = []
    with float64():
        for title, check in CHECKS.items():
            announce(title)
            results += check(effort or Effort())
    return results


__all__ = ["CHECKS", "Effort", "TheoryCheck", "run_checks"]
