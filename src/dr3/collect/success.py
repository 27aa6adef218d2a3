"""How often what a script is for succeeded, as collectors print and keep it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SuccessRate:
    """Of the episodes that tried it: a skill in the drawers, a thing in the kitchen that stood done at the end."""

    skill: str
    successes: int
    episodes: int

    def __str__(self) -> str:
        share = self.successes / self.episodes
        return f"{self.skill}: {self.successes} of {self.episodes} episodes ({share:.0%})"
