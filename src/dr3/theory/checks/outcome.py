"""What a check brings back, and how much it may spend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TheoryCheck:
    """One row of the table."""

    name: str
    claim: str  # what is checked, in one line
    measured: str  # the number, in one line
    passed: bool | None  # None: reported, not judged
    numbers: dict[str, Any] = field(default_factory=dict)  # everything measured, as JSON can hold it; pictures use it
    must_fail: bool = False  # the claim is false, and `passed` means that this showed


@dataclass(frozen=True)
class Effort:
    """How much is simulated."""

    chains: int = 4000
    instances: int = 6  # of Theorem 3.1
    pairs: int = 24  # in sample against out of sample, predicted
    simulated_pairs: int = 3
    noise_scales: tuple[float, ...] = (1.0, 0.5, 0.25, 0.1, 0.03)
    features: int = 400  # random feature matrices of Proposition 3.2
    gridworld_steps: int = 10_000
