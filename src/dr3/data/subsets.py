"""The parts of a log that the paper trains on (section 5): of a replay, and of robot trajectories.

Parts of a replay are no random samples. A replay of an online agent is 50 files of equal length, in time. "1%" and "5%"
are the first rows of *each* file, so they see every age of the agent, in short stretches; "first-10%" is the beginning
of the replay, an agent that has learned little. (A sample of rows drawn at random is `Transitions.subset`; it is
another thing, and has another name.)
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from dr3.data.transitions import Transitions
from dr3.errors import UserError
from dr3.seeds import check_seed

PARTS = 50


@dataclasses.dataclass(frozen=True)
class ReplayPart:
    """`share` of the rows: of each of the 50 files, or, if `first`, of the replay as a whole."""

    share: float
    first: bool

    @classmethod
    def parse(cls, word: str) -> ReplayPart:
        found = re.fullmatch(r"(first-)?(\d+(?:\.\d+)?)%", word)
        share = float(found[2]) / 100 if found else 0.0
        if found is None or not 0 < share <= 1:
            raise UserError(
                f"{word!r} is no part of a replay; write 1% or 5% (of each of {PARTS} files), or first-10%."
            )
        return cls(share, first=found[1] is not None)

    def of_files(self) -> list[float]:
        """How much of each file, from the first on. (Most public replays have a 51st, which belongs to no part.)"""
        if not self.first:
            return [self.share] * PARTS
        whole, rest = divmod(round(self.share * PARTS, 9), 1)  # as a float, 14 % of 50 is more than 7
        return [1.0] * int(whole) + ([rest] if rest or not whole else [])


def replay_subset(data: Transitions, part: str) -> Transitions:
    """The rows of `part` ("1%", "5%", "first-10%") of a replay whose rows are in the order of time.

    The table is taken as 50 files of equal length (a few rows more at the last one). What a file's edge cuts off is
    still known: a row keeps its s', its a' and its return.

    Args:
        data: The table.
        part: Which part of the replay: "1%", "5%" or "first-10%".
    """
    chosen = ReplayPart.parse(part)
    if chosen.first:
        rows = np.arange(max(1, round(chosen.share * len(data))))
    else:
        length = len(data) // PARTS
        count = round(chosen.share * length)
        if count < 1:
            raise UserError(f"{data.name} has {len(data)} rows, too few for {part} of each of {PARTS} parts.")
        rows = (np.arange(PARTS)[:, None] * length + np.arange(count)).ravel()
    return dataclasses.replace(data.rows(rows), name=f"{data.name}-{part}")


def split_episodes(data: Transitions, share: str, *, seed: int = 0) -> tuple[Transitions, Transitions]:
    """Whole episodes drawn at random to be kept aside, such as "20%" of them: the others, and these.

    Args:
        data: The table.
        share: Which share of the episodes is kept aside.
        seed: Everything random follows from it.
    """
    fraction, numbers = _share(share), np.unique(data.episodes)
    count = round(fraction * len(numbers))
    if not 0 < count < len(numbers):
        raise UserError(
            f"{share} of the {len(numbers)} episodes of {data.name} is {count}: both parts need at least one episode."
        )
    aside = np.random.default_rng(check_seed(seed)).choice(numbers, size=count, replace=False)
    held_out = np.isin(data.episodes, aside)
    kept, other = (data.rows(np.flatnonzero(which)) for which in (~held_out, held_out))
    return kept, dataclasses.replace(other, name=f"{data.name}-held-out-{share}", source=None)


def _share(word: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)%", word)
    fraction = float(found[1]) / 100 if found else 0.0
    if not 0 < fraction <= 1:
        raise UserError(f"{word!r} is no share of the episodes; write a percentage, such as 5% or 25%.")
    return fraction


def trajectory_subset(data: Transitions, share: str, *, seed: int) -> Transitions:
    """Whole episodes drawn at random without replacement, in their logged order: "5%" or "25%" of COG's (figure 4).

    Args:
        data: The table.
        share: Which share of the episodes: "5%".
        seed: Everything random follows from it.
    """
    fraction, numbers = _share(share), np.unique(data.episodes)
    chosen = np.random.default_rng(check_seed(seed)).choice(
        numbers, size=max(1, round(fraction * len(numbers))), replace=False
    )
    rows = np.flatnonzero(np.isin(data.episodes, chosen))
    # "5%" alone is what a part of a replay is called, and another seed draws other episodes.
    return dataclasses.replace(data.rows(rows), name=f"{data.name}-trajectories-{share}-seed{seed}")
