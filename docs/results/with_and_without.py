"""The tables and pictures of the pages beside this: python docs/results/with_and_without.py --help

Reads the runs of a sweep whose tasks come in pairs, without and with DR3, and prints a row for each data set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from numpy.typing import NDArray

from dr3.reports.compare import MEASURED, carried_on
from dr3.reports.curves import Panel, draw
from dr3.stats import average_over_checkpoints, difference, mean
from dr3.training import Runs

NAMES = ("without DR3", "with DR3")


@dataclass(frozen=True)
class Options:
    """What to read, and where the pictures go."""

    sweep: tyro.conf.Positional[Path]
    """The folder that `dr3 sweep` was given."""

    pictures: tyro.conf.Positional[Path]
    """The folder for the pictures."""

    score: str = "evaluation/return"
    """What to tabulate: evaluation/return, evaluation/normalised_score, evaluation/success."""


def main(options: Options) -> None:
    pairs = pairs_in(options.sweep)
    for word, (without, treated) in pairs.items():
        print(f"| {word} | {' | '.join(row(without, treated, options.score))} |")
    worlds = sorted({re.sub(r"-\d$", "", word) for word in pairs})
    measured = {
        "score": (options.score, False),
        **{name: (key, name == "dot product") for name, key in MEASURED.items()},
    }
    for name, (key, log) in measured.items():
        panels = [Panel(world, name, lines(pairs, world, key), log=log) for world in worlds]
        draw(panels, options.pictures / f"{name.replace(' ', '-')}.png", caption="thick: median of all runs")


def pairs_in(sweep: Path) -> dict[str, tuple[Runs, Runs]]:
    """By the name of the data file, the runs without and with DR3."""
    found: dict[str, dict[bool, Runs]] = {}
    for config in sorted(sweep.glob("*/config.json")):
        runs = Runs(config.parent)
        found.setdefault(word_for(runs), {})[runs.members[0].regularizer is not None] = runs
    return {word: (of[False], of[True]) for word, of in found.items()}


def word_for(runs: Runs) -> str:
    """The data file's name; where it is a share of task and prior data, their folder's and the share."""
    source = runs.config["data"]["source"]
    file, share = Path(source.split(":")[0]), re.search(r"trajectories=(\d+%)", source)
    return file.stem if share is None else f"{file.parent.name}, {share[1]}"


def row(without: Runs, treated: Runs, score: str) -> list[str]:
    """Average and final score of both with the gain, then the instruments at the end, without → with."""
    curves = [carried_on(runs.evaluations[score])[:, runs.evaluation_steps > 0] for runs in (without, treated)]
    cells = []
    for summary in (lambda of: average_over_checkpoints(of[:, None])[:, 0], lambda of: of[:, -1]):
        before, after = (summary(of) for of in curves)
        gain = difference(after[:, None], before[:, None], mean, np.random.default_rng(0), paired=True)
        cells += [f"{before.mean():.2f}", f"{after.mean():.2f}"]
        cells.append(f"{gain.estimate:+.2f} ({gain.lower:+.2f}, {gain.upper:+.2f})")
    ends = {
        name: [np.median(carried_on(r.metrics[key])[:, -1]) for r in (without, treated)]
        for name, key in MEASURED.items()
    }
    return cells + [f"{before:.3g} → {after:.3g}" for before, after in ends.values()]


def lines(pairs: dict[str, tuple[Runs, Runs]], world: str, key: str) -> dict[str, tuple[NDArray, NDArray]]:
    """Both sides over training, the data sets of one world together."""
    drawn = {}
    for side, name in enumerate(NAMES):
        of = [pair[side] for word, pair in pairs.items() if re.sub(r"-\d$", "", word) == world]
        tried = key.startswith("evaluation/")
        curves = [(runs.evaluations if tried else runs.metrics)[key] for runs in of]
        drawn[name] = (of[0].evaluation_steps if tried else of[0].steps, np.concatenate(curves))
    return drawn


if __name__ == "__main__":
    main(tyro.cli(Options))
