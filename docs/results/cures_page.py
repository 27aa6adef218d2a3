"""The tables of cures.md from the lines in docs/evidence/cures: python docs/results/cures_page.py

It writes them into cures.md, between the two comments that say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cures_evidence import Part, Row
from cures_gridworlds import GRIDWORLDS, METHODS
from cures_minatar import FIRST, METHOD, MINATAR
from numpy.typing import NDArray
from scipy.stats import t as student_t

from dr3.cures import CureRow, rank
from dr3.reports.compare import score

PAGE = Path(__file__).with_name("cures.md")
BEGIN, END = "<!-- tables: python docs/results/cures_page.py -->", "<!-- end of the tables -->"
EARLY_STOP = "early-stop"
INSTRUMENTS = {
    "dot product": "dot_product",
    "cosine": "cosine",
    "‖φ‖": "norm",
    "srank": "srank",
    "mean Q": "q_mean",
}
# What the page is asked, as a difference of two rows.
QUESTIONS = {
    "Is DR3 better than LayerNorm?": ("dr3", "layer-norm"),
    "Does LayerNorm add to DR3?": ("dr3+layer-norm", "dr3"),
    "Does DR3 add to LayerNorm?": ("dr3+layer-norm", "layer-norm"),
    "Decorrelation or scale: DR3 over the penalty on norms alone?": ("dr3", "norm"),
    "Decorrelation or scale: DR3 over features of unit length?": ("dr3", "unit-features"),
    "Is DR3 better than nothing?": ("dr3", "none"),
    "Is LayerNorm better than nothing?": ("layer-norm", "none"),
}
Scores = Mapping[str, NDArray[np.float64]]  # of a remedy, (units, worlds)


@dataclass(frozen=True)
class Section:
    """A part of the page: its methods, what its units are called, and which remedies a unit must have to count."""

    part: Part
    methods: tuple[str, ...]
    units: str
    title: str
    needed: tuple[str, ...] | None = None  # None: all that have a line


SECTIONS = (
    Section(
        GRIDWORLDS, tuple(METHODS), "data sets", "{method} on gridworlds: {count} data sets of each world ({seeds})"
    ),
    Section(MINATAR, (METHOD,), "seeds", "{method} on MinAtar: {count} seeds of each game ({seeds})", FIRST),
)


def main() -> None:
    parts = [part for section in SECTIONS for method in section.methods if (part := tables_of(section, method))]
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text("\n\n".join([before + BEGIN, *parts, END + after]))


def tables_of(section: Section, method: str) -> str:
    """All tables of one method; none before two units are complete."""
    part, worlds = section.part, section.part.worlds
    rows, chosen = part.read(method, "runs"), part.choices(method)
    seeds = complete(section, rows)
    if len(seeds) < 2:
        return ""
    found = {remedy: of_remedy(rows, remedy, seeds) for remedy in part.remedies}
    own = {remedy: mine for remedy, mine in found.items() if len(mine) == len(seeds) * len(worlds)}
    scores = {remedy: grid(mine, "score", worlds, seeds) for remedy, mine in own.items()}
    peaks = {remedy: grid(mine, "peak", worlds, seeds) for remedy, mine in own.items()}
    scores[EARLY_STOP], peaks[EARLY_STOP] = grid(own["none"], "early_stop", worlds, seeds), peaks["none"]
    settings = {remedy: setting_words(remedy, chosen) for remedy in own} | {EARLY_STOP: "the rule `healthy`"}
    which = f"seeds {seeds[0]} to {seeds[-1]}"
    return "\n\n".join(
        [
            "## " + section.title.format(method=method.upper(), count=len(seeds), seeds=which),
            answer(scores, section.units),
            table(("question", "difference of scores", "with Student's 95 % interval", "answer"), questions(scores)),
            table(
                ("remedy", "setting", "score", "gain over none", "gain over dr3", "best on the way"),
                [main_row(remedy, settings[remedy], scores, peaks) for remedy in in_order(scores)],
            ),
            f"Means over {section.units}, by world, then the instruments at the end (medians over {section.units} and "
            "worlds):",
            table(("remedy", *worlds, *INSTRUMENTS), [second_row(remedy, scores, own) for remedy in in_order(scores)]),
            beer_words(own, worlds),
        ]
    ).rstrip()


def complete(section: Section, rows: Sequence[Row]) -> list[int]:
    """The seeds, from 0 on, of which every remedy that is needed has its line in all worlds."""
    remedies = section.needed or {row["remedy"] for row in rows}
    there = {(row["remedy"], row["world"], int(row["seed"])) for row in rows}
    seeds = []
    while rows and all((one, world, len(seeds)) in there for one in remedies for world in section.part.worlds):
        seeds.append(len(seeds))
    return seeds


def of_remedy(rows: Sequence[Row], remedy: str, seeds: Sequence[int]) -> dict[tuple[str, int], Row]:
    return {(r["world"], int(r["seed"])): r for r in rows if r["remedy"] == remedy and int(r["seed"]) in seeds}


def grid(
    found: Mapping[tuple[str, int], Row], column: str, worlds: Sequence[str], seeds: Sequence[int]
) -> NDArray[np.float64]:
    """(units, worlds)."""
    return np.array([[float(found[world, seed][column]) for world in worlds] for seed in seeds])


def in_order(scores: Scores) -> list[str]:
    """The highest mean first."""
    return sorted(scores, key=lambda remedy: -float(scores[remedy].mean()))


def setting_words(remedy: str, chosen: Mapping[str, str]) -> str:
    """As `learning rate 0.005`, or `dr3:0.03`."""
    words = dict.fromkeys(chosen[part] for part in remedy.split("+"))
    return ", ".join(f"`{word}`" for word in words)


def answer(scores: Scores, units: str) -> str:
    """What `dr3 cure` would say of these numbers."""
    found = rank([as_row(remedy, values) for remedy, values in scores.items()])
    return found.sentence.replace("seeds", units)


def questions(scores: Scores) -> list[list[str]]:
    """Each with the mean difference by data set, Student's 95 % interval of it, and what that says."""
    found = []
    for words, (one, other) in QUESTIONS.items():
        if not {one, other} <= set(scores):
            continue
        differences = scores[one].mean(axis=1) - scores[other].mean(axis=1)
        reach = student_t.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
        low, high = differences.mean() - reach, differences.mean() + reach
        says = "yes" if low > 0 else "no, it is worse" if high < 0 else "not told apart"
        found.append([words, f"{one} - {other}", f"{differences.mean():+.1f} ({low:+.1f}, {high:+.1f})", says])
    return found


def as_row(remedy: str, scores: NDArray[np.float64]) -> CureRow:
    by_seed = tuple(scores.mean(axis=1).tolist())
    return CureRow(remedy, "", "", len(by_seed), 0, 0, {}, {}, None, None, by_seed, None)


def main_row(remedy: str, setting: str, scores: Scores, peaks: Scores) -> list[str]:
    own = scores[remedy].mean(axis=1)[:, None]
    plain = score(own, None, paired=True).interval
    gains = []
    for other in ("none", "dr3"):
        gain = score(own, scores[other].mean(axis=1)[:, None], paired=True).gain if remedy != other else None
        gains.append("" if gain is None else gain.text("{:+.1f}".format))
    return [remedy, setting, "" if plain is None else plain.text(), *gains, f"{peaks[remedy].mean():.1f}"]


def second_row(remedy: str, scores: Scores, own: Mapping[str, Mapping[tuple[str, int], Row]]) -> list[str]:
    worlds = [f"{mean:.1f}" for mean in scores[remedy].mean(axis=0)]
    if remedy not in own:
        return [remedy, *worlds, *[""] * len(INSTRUMENTS)]
    found = [f"{np.median([float(r[key]) for r in own[remedy].values()]):.3g}" for key in INSTRUMENTS.values()]
    return [remedy, *worlds, *found]


def beer_words(own: Mapping[str, Mapping[tuple[str, int], Row]], worlds: Sequence[str]) -> str:
    """How often BEER can act at all."""
    if "beer" not in own:
        return ""
    shares = []
    for world in worlds:
        found = [float(row["beer_can_act"]) for (one, _), row in own["beer"].items() if one == world]
        shares.append(f"{world} {100 * np.mean(found):.0f} %")
    return f"The share of pairs on which BEER's bound is below 1 at the end, so that it can act: {', '.join(shares)}."


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
