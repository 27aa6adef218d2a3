"""Do the published Atari aggregates follow from the published per-game tables?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from dr3.paper.auditing.line import HALF_DIGIT, AuditLine
from dr3.paper.auditing.reconstruct import Floats, iqm_range
from dr3.paper.tables import Table, all_tables, table
from dr3.stats import iqm

SHARES = ("1%", "5%", "10%")
ALGORITHMS = ("CQL", "CQL+DR3", "REM", "REM+DR3")


def per_game(share: str, algorithm: str) -> Table:
    return table(f"atari-{algorithm[:3].lower()}-{share.rstrip('%')}")


def normalised(share: str, algorithm: str, measure: str) -> tuple[Floats, Floats]:
    """Per-game scores and their standard deviations in percent, from the printed returns: (17,) each."""
    games = per_game(share, algorithm)
    low, high = (table("atari-normalisers").means(*name) for name in (("random", "score"), ("DQN replay", "average")))
    scale = 100.0 / (high - low)
    return (games.means(algorithm, measure) - low) * scale, games.deviations(algorithm, measure) * scale


def rounding_bounds(share: str, algorithm: str, measure: str) -> tuple[Floats, Floats]:
    """The least and the greatest per-game scores when every printed number may be off by half its last digit."""
    returns = per_game(share, algorithm).means(algorithm, measure)
    low, high = (table("atari-normalisers").means(*name) for name in (("random", "score"), ("DQN replay", "average")))
    corners = [
        100.0 * (returns + a - low - b) / (high + c - low - b)
        for a, b, c in itertools.product((-HALF_DIGIT, HALF_DIGIT), repeat=3)
    ]
    return np.min(corners, axis=0), np.max(corners, axis=0)


def medians() -> Iterator[AuditLine]:
    published = table("atari-median")
    for measure, share, algorithm in itertools.product(("final", "average"), SHARES, ALGORITHMS):
        value = published.value(share, algorithm, measure).mean
        # The median is monotone in every score, so the bounds of the scores give the bounds of the median.
        least, greatest = (float(np.median(side)) for side in rounding_bounds(share, algorithm, measure))
        middle = float(np.median(normalised(share, algorithm, measure)[0]))
        follows = least - HALF_DIGIT <= value <= greatest + HALF_DIGIT
        yield AuditLine(
            f"Median over 17 games, {measure}",
            f"{algorithm}, {share}",
            f"{value:z.1f}",
            f"{middle:z.1f} ({least:z.1f} to {greatest:z.1f} by rounding)",
            "follows" if follows else "does not follow",
        )


def interquartile_means(rng: np.random.Generator) -> Iterator[AuditLine]:
    for name, measure in (("atari-iqm-average", "average"), ("atari-iqm-final", "final")):
        for share, algorithm in itertools.product(SHARES, ALGORITHMS):
            value = table(name).value(share, algorithm, measure).mean
            means, deviations = normalised(share, algorithm, measure)
            least, greatest = iqm_range(means, deviations, 5, rng)
            possible = least - HALF_DIGIT <= value <= greatest + HALF_DIGIT
            yield AuditLine(
                f"IQM over 17 games, {measure}",
                f"{algorithm}, {share}",
                f"{value:z.1f}",
                f"{float(iqm(means[None])):z.1f} from the means; runs allow {least:z.1f} to {greatest:z.1f}",
                "possible" if possible else "does not follow",
            )


def repeated_tables() -> Iterator[AuditLine]:
    yield _repeated(
        ("atari-iqm-final", "atari-median"),
        [(share, algorithm, "final") for share in SHARES for algorithm in ALGORITHMS],
        "the table of final IQM is not the table of final medians",
        "two statistics",
        repeats=False,
    )
    yield _repeated(
        ("atari-iqm-average", "atari-stop-gradient"),
        [(share, algorithm, "average") for share in SHARES for algorithm in ("REM", "REM+DR3")],
        "REM and REM+DR3 in the table of Δ' are those of table 1",
        "the same runs",
        repeats=True,
    )


def _repeated(
    names: tuple[str, str], cells: list[tuple[str, str, str]], what: str, published: str, *, repeats: bool
) -> AuditLine:
    """Whether two tables are equal in all these cells, intervals included, where they should be or should not."""
    one, other = (table(name) for name in names)
    equal = sum(one.value(*cell) == other.value(*cell) for cell in cells)
    return AuditLine(
        "Tables against each other",
        what,
        published,
        f"{equal} of {len(cells)} cells equal, intervals included",
        "follows" if (equal == len(cells)) == repeats else "does not follow",
    )


def points_in_intervals() -> Iterator[AuditLine]:
    inside = 0
    for found in all_tables().values():
        for row, values in found.cells.items():
            for column, value in zip(found.columns, values, strict=True):
                if value.interval is None:
                    continue
                if value.interval[0] <= value.mean <= value.interval[1]:
                    inside += 1
                    continue
                where = f"{found.name}: {column}, {row}"
                yield AuditLine(
                    "Points inside their own intervals", where, value.text(found.digits), "outside", "does not follow"
                )
    yield AuditLine("Points inside their own intervals", "all other cells", f"{inside} cells", "inside", "follows")
