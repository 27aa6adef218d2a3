"""Which published aggregates follow from the published details, and which do not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dr3.paper.presets import ATARI_DATA, TUNING_GAMES, Atari, CQLWeights
from dr3.paper.reconstruct import Floats, iqm_range, possible_pairs, whole_percentages
from dr3.paper.tables import Table, table, tables
from dr3.stats import improvement, iqm

# "follows": recomputed to the printed digits. "possible": needs runs that were not published, and lies within what the
# published means and deviations allow.
Verdict = Literal["follows", "possible", "does not follow"]
SHARES = ("1%", "5%", "10%")
ALGORITHMS = ("CQL", "CQL+DR3", "REM", "REM+DR3")
HALF_DIGIT = 0.05 + 1e-9  # Atari numbers are printed with one digit


@dataclass(frozen=True)
class Check:
    """One published statement beside what the details give."""

    section: str
    statement: str
    published: str
    recomputed: str
    verdict: Verdict


def audit(seed: int = 0) -> list[Check]:
    """All checks; `seed` is for the two searches that draw random numbers."""
    rng = np.random.default_rng(seed)
    return [
        *_medians(),
        *_interquartile_means(rng),
        *_repeated_table(),
        *_points_in_intervals(),
        *_claims_in_the_text(),
        *_whole_percentages(),
        *_probabilities(rng),
        *_stated_twice(),
    ]


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


def _medians() -> Iterator[Check]:
    published = table("atari-median")
    for measure, share, algorithm in itertools.product(("final", "average"), SHARES, ALGORITHMS):
        value = published.value(share, algorithm, measure).mean
        # The median is monotone in every score, so the bounds of the scores give the bounds of the median.
        least, greatest = (float(np.median(side)) for side in rounding_bounds(share, algorithm, measure))
        middle = float(np.median(normalised(share, algorithm, measure)[0]))
        follows = least - HALF_DIGIT <= value <= greatest + HALF_DIGIT
        yield Check(
            f"Median over 17 games, {measure}",
            f"{algorithm}, {share}",
            f"{value:.1f}",
            f"{middle:.1f} ({least:.1f} to {greatest:.1f} by rounding)",
            "follows" if follows else "does not follow",
        )


def _interquartile_means(rng: np.random.Generator) -> Iterator[Check]:
    for name, measure in (("atari-iqm-average", "average"), ("atari-iqm-final", "final")):
        for share, algorithm in itertools.product(SHARES, ALGORITHMS):
            value = table(name).value(share, algorithm, measure).mean
            means, deviations = normalised(share, algorithm, measure)
            least, greatest = iqm_range(means, deviations, 5, rng)
            possible = least - HALF_DIGIT <= value <= greatest + HALF_DIGIT
            yield Check(
                f"IQM over 17 games, {measure}",
                f"{algorithm}, {share}",
                f"{value:.1f}",
                f"{float(iqm(means[None])):.1f} from the means; runs allow {least:.1f} to {greatest:.1f}",
                "possible" if possible else "does not follow",
            )


def _repeated_table() -> Iterator[Check]:
    final, medians = table("atari-iqm-final"), table("atari-median")
    cells = [(share, algorithm, "final") for share in SHARES for algorithm in ALGORITHMS]
    equal = sum(final.value(*cell) == medians.value(*cell) for cell in cells)
    yield Check(
        "Tables against each other",
        "the table of final IQM is not the table of final medians",
        "two statistics",
        f"{equal} of {len(cells)} cells equal, intervals included",
        "does not follow" if equal == len(cells) else "follows",
    )
    first, again = table("atari-iqm-average"), table("atari-stop-gradient")
    pairs = [(share, algorithm, "average") for share in SHARES for algorithm in ("REM", "REM+DR3")]
    equal = sum(first.value(*cell) == again.value(*cell) for cell in pairs)
    yield Check(
        "Tables against each other",
        "REM and REM+DR3 in the table of Δ' are those of table 1",
        "the same runs",
        f"{equal} of {len(pairs)} cells equal",
        "follows" if equal == len(pairs) else "does not follow",
    )


def _points_in_intervals() -> Iterator[Check]:
    cells = [
        (found, row, column, value)
        for found in tables().values()
        for row, values in found.cells.items()
        for column, value in zip(found.columns, values, strict=True)
        if value.interval is not None
    ]
    outside = [cell for cell in cells if not cell[3].interval[0] <= cell[3].mean <= cell[3].interval[1]]
    for found, row, column, value in outside:
        yield Check(
            "Points inside their own intervals",
            f"{found.name}: {column}, {row}",
            str(value),
            "outside",
            "does not follow",
        )
    yield Check(
        "Points inside their own intervals",
        "all other cells",
        f"{len(cells) - len(outside)} cells",
        "inside",
        "follows",
    )


def _claims_in_the_text() -> Iterator[Check]:
    section = "Claims in the text"
    for claim, percent, name, base, better, measure in (
        ("CQL+DR3 has 25% better average performance", 25.0, "atari-iqm-average", "CQL", "CQL+DR3", "average"),
        ("CQL+DR3 has 20% better final performance", 20.0, "atari-iqm-final", "CQL", "CQL+DR3", "final"),
        ("CQL+DR3 has 31.5% better median score", 31.5, "atari-median", "CQL", "CQL+DR3", "average"),
        ("REM+Δ' is about 130% better than REM", 130.0, "atari-stop-gradient", "REM", "REM+Δ'", "average"),
    ):
        before, after = table(name).means(base, measure), table(name).means(better, measure)
        by_share = 100.0 * np.mean(after / before - 1.0)
        pooled = 100.0 * (after.sum() / before.sum() - 1.0)
        near = min(abs(by_share - percent), abs(pooled - percent)) <= 1.0
        yield Check(
            section,
            claim,
            f"{percent:g}%",
            f"{by_share:.1f}% (mean of the three ratios), {pooled:.1f}% (ratio of the three means)",
            "follows" if near else "does not follow",
        )
    brac = table("brac")
    before, after = brac.means("BRAC", "final"), brac.means("BRAC+DR3", "final")
    gain = float(np.median(after) - np.median(before))
    yield Check(
        section,
        "BRAC+DR3 improves the median score by 13.8",
        "13.8",
        f"{np.median(after):.1f} - {np.median(before):.1f} = {gain:.1f}; the median of the 15 differences is "
        f"{np.median(after - before):.1f}, and {np.sum(after > before)} of 15 tasks improve",
        "follows" if abs(gain - 13.8) < HALF_DIGIT else "does not follow",
    )


def _whole_percentages() -> Iterator[Check]:
    for name in ("antmaze", "kitchen"):
        cells = [
            (f"{column}, {row}", value)
            for row, values in table(name).cells.items()
            for column, value in zip(table(name).columns, values, strict=True)
        ]
        strange = [where for where, value in cells if not whole_percentages(value.mean, value.deviation or 0.0)]
        yield Check(
            "Three runs behind mean ± deviation",
            f"{name}: each cell is three whole percentages",
            f"{len(cells)} cells",
            f"{len(cells) - len(strange)} can be" + "".join(f"; not {where}" for where in strange),
            "possible" if not strange else "does not follow",
        )


def _probabilities(rng: np.random.Generator) -> Iterator[Check]:
    for name, published in (("antmaze", (0.83, 0.7, 0.96)), ("kitchen", (0.8, 0.6, 1.0))):
        results = [
            improvement(np.transpose(first), np.transpose(second), rng, replicates=5_000)
            for first, second in _possible_matrices(name)
        ]
        spans = []
        for field in ("estimate", "lower", "upper"):
            values = [getattr(result.probability, field) for result in results]
            spans.append((min(values), max(values)))
        for what, value, (least, greatest) in zip(
            ("", ", lower limit", ", upper limit"), published, spans, strict=True
        ):
            possible = least - 0.01 <= value <= greatest + 0.01
            yield Check(
                "Probability of improvement, CQL+DR3 over CQL at 2M",
                f"{name}{what}",
                f"{value:g}",
                f"{least:.2f} to {greatest:.2f} over all runs that fit",
                "possible" if possible else "does not follow",
            )
        for word in ("significant", "meaningful"):
            passing = sum(getattr(result, word) for result in results)
            yield Check(
                "Probability of improvement, CQL+DR3 over CQL at 2M",
                f"{name} is {word}",
                "yes",
                f"in {passing} of {len(results)} ways to fill in the runs",
                "follows" if passing == len(results) else "possible" if passing else "does not follow",
            )


def _possible_matrices(name: str) -> Iterator[tuple[tuple, tuple]]:
    """(CQL+DR3, CQL) as (tasks, runs), one for each combination of ways in which the tasks can come out."""
    found = table(name)
    by_task = []
    for row in found.rows:
        ours, base = (found.value(row, algorithm, "2M") for algorithm in ("CQL+DR3", "CQL"))
        by_task.append(possible_pairs((ours.mean, ours.deviation or 0.0), (base.mean, base.deviation or 0.0)))
    for combination in itertools.product(*by_task):
        yield tuple(pair[0] for pair in combination), tuple(pair[1] for pair in combination)


def _stated_twice() -> Iterator[Check]:
    section = "Settings that are stated twice"
    per_iteration = Atari().gradient_steps_per_iteration
    for share, claimed in (("1%", 6.5), ("5%", 12.5), ("10%", 12.5)):
        data = ATARI_DATA[share]
        actual = data.gradient_steps / 1e6
        yield Check(
            section,
            f"gradient steps on {share}",
            f"{claimed:g}M",
            f"{data.iterations} x {per_iteration:,} = {actual:g}M",
            "follows" if claimed == actual else "does not follow",
        )
    weights = CQLWeights()
    yield Check(
        section,
        "CQL weight in all Atari experiments",
        "0.1",
        f"captions: {weights.atari_1} (1%), {weights.atari_5} (5%), {weights.atari_10} (10%)",
        "follows" if weights.atari_1 == weights.atari_5 == weights.atari_10 == 0.1 else "does not follow",
    )
    first, second = TUNING_GAMES.values()
    yield Check(
        section,
        "the five tuning games",
        " and ".join(TUNING_GAMES),
        f"only the first has {', '.join(set(first) - set(second))}, only the second {', '.join(set(second) - set(first))}",
        "follows" if set(first) == set(second) else "does not follow",
    )
    yield Check(
        section,
        "AntMaze at 2M and 3M is 9x longer (text), 6x and 9x (caption)",
        "9x",
        "2M and 3M steps against 1M, at 3x the learning rate: 6x and 9x",
        "does not follow",
    )
