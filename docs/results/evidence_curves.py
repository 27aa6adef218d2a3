"""A picture of bundles of evidence over training: python docs/results/evidence_curves.py --help

Bundles of one algorithm in one world, such as those of several replays, are joined: one line, one band.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from numpy.typing import NDArray

from dr3.files import read_json
from dr3.paper.experiments.bundle import DOT, MEAN_Q, OUTSIDE, Bundle
from dr3.reports.curves import Panel, draw_bands
from dr3.reports.names import algorithm_name, world_name
from dr3.runs.outcomes import RETURN

MEASURED = {
    RETURN: ("return", False),
    DOT: ("feature dot product", True),
    MEAN_Q: ("mean Q", False),
    OUTSIDE: ("share of Q out of bounds", False),
}
Curve = tuple[NDArray[np.int64], NDArray[np.float64]]
Arms = dict[str, list[Bundle]]


@dataclass(frozen=True)
class Options:
    """What to draw, and where."""

    bundles: tyro.conf.Positional[tuple[Path, ...]]
    """Files that `dr3 reproduce` left in its folder of evidence."""

    picture: Path
    """The picture to write."""


def main(options: Options) -> None:
    worlds: dict[str, Arms] = {}
    for file in options.bundles:
        bundle = Bundle(file.stem, read_json(file, task=dict, members=list, metrics=dict, evaluations=dict))
        worlds.setdefault(bundle.record["data"]["world"], {}).setdefault(algorithm_of(bundle), []).append(bundle)
    panels = [
        Panel(
            world_name(world),
            words,
            {f"{arm}, {seeds_in(worlds, arm)} seeds": joined(of, metric) for arm, of in sorted(arms.items())},
            log=log,
        )
        for world, arms in worlds.items()
        for metric, (words, log) in MEASURED.items()
    ]
    caption = "lines: medians over seeds; bands: their middle half; out of bounds: beyond any return that rewards allow"
    draw_bands(panels, options.picture, caption=caption, columns=len(MEASURED))


def algorithm_of(bundle: Bundle) -> str:
    algorithms = {member["algorithm"] for member in bundle.record["members"]}
    if len(algorithms) > 1:
        raise SystemExit(f"{bundle.name} holds several algorithms, and one line would join them: {algorithms}.")
    return algorithm_name(algorithms.pop())


def seeds_in(worlds: dict[str, Arms], arm: str) -> str:
    """How many seeds an algorithm has in each world: "5", or "3 to 5"."""
    counts = sorted({sum(len(bundle.seeds) for bundle in arms.get(arm, ())) for arms in worlds.values()})
    return " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))


def joined(bundles: list[Bundle], metric: str) -> Curve:
    """The seeds of all bundles in one table, at the steps that all have."""
    curves = [bundle.curve(metric) for bundle in bundles]
    steps = np.array(sorted(set.intersection(*(set(steps.tolist()) for steps, _ in curves))))
    return steps, np.concatenate([values[:, np.isin(own, steps)] for own, values in curves])


if __name__ == "__main__":
    main(tyro.cli(Options))
