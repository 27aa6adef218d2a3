"""Task names the paper knows: how their returns are normalised, and what it printed for them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dr3.envs.tasks import find_task
from dr3.paper.tables import PrintedValue, Table, table

_ATARI_NAME = re.compile(r"(?:atari/|ale/)?(?P<game>[a-z' .]+?)(?:-v\d)?(?:@(?P<share>1|5|10)%)?")


@dataclass(frozen=True)
class Printed:
    """What the paper printed for an algorithm on a task, as a normalised score, and which table says so."""

    measure: str
    value: PrintedValue
    table: str


def atari_game(task: str) -> tuple[str, str | None] | None:
    """("Breakout", "1") for `atari/Breakout@1%`, `ALE/Breakout-v5@1%`, `breakout@1%`; the share is None if not given.

    None for anything that is not one of the 17 games. `minatar/breakout` is another game.
    """
    match = _ATARI_NAME.fullmatch(task.lower())
    if match is None:
        return None
    wanted = re.sub(r"[^a-z]", "", match["game"])
    for game in table("atari-normalisers").rows:
        if game.lower() == wanted:
            return game, match["share"]
    return None


def score_range(task: str) -> tuple[float, float] | None:
    """The returns that count as 0 and as 100, or None for what is neither one of the 17 games nor a task of D4RL."""
    if (found := atari_game(task)) is not None:
        low, high = table("atari-normalisers").cells[found[0]]
        return low.mean, high.mean
    known = find_task(task)
    return None if known is None else (known.minimum, known.maximum)


def normalise(task: str, value: float) -> float | None:
    """The normalised score (in percent) of a return, or None for a task without a `score_range`.

    Args:
        task: The name of the task.
        value: The return.
    """
    limits = score_range(task)
    return None if limits is None else 100.0 * (value - limits[0]) / (limits[1] - limits[0])


def printed(algorithm: str, task: str) -> tuple[Printed, ...]:
    """All that the paper's tables say about an algorithm on a task, as normalised scores; empty if nothing.

    Args:
        algorithm: The name of the algorithm, as the tables print it.
        task: The name of the task.
    """
    wanted = re.sub(r"\s", "", algorithm).lower()
    return tuple(
        Printed(column.measure, _as_score(value, score_range(task) if found.unit == "return" else None), found.name)
        for found, row in _rows(task)
        for column, value in zip(found.columns, found.cells[row], strict=True)
        if column.algorithm.lower() == wanted
    )


def _rows(task: str) -> list[tuple[Table, str]]:
    """The paper's rows about a task; an Atari game has one per base method, if its data share is given."""
    if (found := atari_game(task)) is not None:
        game, share = found
        return [] if share is None else [(table(f"atari-{base}-{share}"), game) for base in ("cql", "rem")]
    name = task.lower().removeprefix("d4rl/")
    if name.startswith("kitchen-"):
        name = name.removesuffix("-v0")  # the paper leaves out the only version it can mean
    return [(found, name) for found in map(table, ("antmaze", "kitchen", "brac")) if name in found.cells]


def _as_score(value: PrintedValue, limits: tuple[float, float] | None) -> PrintedValue:
    """A printed return as a score; what is printed as a score already has no limits to apply."""
    if limits is None or value.deviation is None:
        return value
    low, high = limits
    return PrintedValue(
        round(100.0 * (value.mean - low) / (high - low), 1), round(100.0 * value.deviation / (high - low), 1)
    )
