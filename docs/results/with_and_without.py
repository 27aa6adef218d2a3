"""The tables and pictures of the pages beside this: python docs/results/with_and_without.py --help

Reads the runs of one method in one or more sweeps, without a regularizer and with some, and prints a row for each data
set and regularizer: both sides' scores and the gain, then what the instruments say at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from numpy.typing import NDArray

from dr3.notation import spell, split
from dr3.reports.compare import MEASURED
from dr3.reports.curves import Panel, draw_bands
from dr3.reports.names import algorithm_name, world_name
from dr3.runs import Runs
from dr3.stats import average_over_checkpoints, difference, forward_fill, mean

WITHOUT = "none"
COLUMNS = (
    *("data", "with", "average without", "with", "gain", "final without", "with", "gain"),
    *("dot product", "cosine", "srank", "mean Q"),
)
Arms = Mapping[str, Mapping[str, Runs]]  # by data set, then by regularizer


@dataclass(frozen=True)
class Options:
    """What to read, and where the pictures go."""

    sweeps: tyro.conf.Positional[tuple[Path, ...]]
    """The folders that `dr3 sweep` was given."""

    pictures: Path | None = None
    """A folder for the picture, `together.png`; none is drawn without it."""

    score: str = "evaluation/return"
    """What to tabulate: evaluation/return, evaluation/normalised_score, evaluation/success."""

    method: str | None = None
    """Only the runs of this method."""

    only: str = ""
    """Only data whose word contains this, such as replay=1%."""


def main(options: Options) -> None:
    arms = arms_in(options)
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    for word, sides in arms.items():
        for regularizer, treated in sides.items():
            if regularizer != WITHOUT:
                print(f"| {word} | {regularizer} | {' | '.join(row(sides[WITHOUT], treated, options.score))} |")
    if options.pictures is None:
        return
    worlds = sorted({world_of(word) for word in arms})
    measured = {options.score: (options.score.rpartition("/")[2].replace("_", " "), False)}
    measured |= {key: (name, name == "dot product") for name, key in MEASURED.items()}
    panels = [
        Panel(world_name(world), words, lines(arms, world, key), log=log)
        for key, (words, log) in measured.items()
        for world in worlds
    ]
    draw_bands(
        panels,
        options.pictures / "together.png",
        caption="lines: medians over the runs of a world; bands: their middle half",
        columns=len(worlds),
    )


def arms_in(options: Options) -> Arms:
    """The runs of all sweeps, those without a regularizer first."""
    found: dict[str, dict[str, Runs]] = {}
    methods: set[str] = set()
    for config in sorted(config for sweep in options.sweeps for config in sweep.glob("*/config.json")):
        runs = Runs(config.parent)
        source, member = runs.config.data.source, runs.members[0]
        if options.only in source and options.method in (None, member.method.name):
            methods.add(member.method.name)
            name = WITHOUT if member.regularizer is None else spell(member.regularizer)
            found.setdefault(label(source), {})[name] = runs
    if len(methods) > 1:
        raise SystemExit(f"There are runs of {', '.join(sorted(methods))}: choose one with --method.")
    first = {word: {WITHOUT: sides.pop(WITHOUT)} for word, sides in found.items() if WITHOUT in sides}
    return {word: {**first[word], **found[word]} for word in first}


def label(source: str) -> str:
    """A data word in short: the file's name (of task and prior data, their folder's; of DQN-replay files, the game and
    the number of the replay), and which part of it."""
    file, part = Path(split(source)[0]), re.search(r"(?:replay|trajectories)=([^:+]+)", source)
    name = file.parent.name if "+" in source else file.stem
    if file.name == "replay_logs":
        name = "-".join(file.parts[-3:-1])
    return " ".join([name, *(part.groups() if part else ())])


def world_of(word: str) -> str:
    """The replays of a world in one panel: asterix-0 1% and asterix-1 1% are both asterix 1%."""
    return re.sub(r"-\d\b", "", word)


def row(without: Runs, treated: Runs, score: str) -> list[str]:
    """Average and final score of both with the gain, then the instruments at the end, without → with."""
    curves = [forward_fill(runs.evaluations[score])[:, runs.evaluation_steps > 0] for runs in (without, treated)]
    cells = []
    for summary in (lambda of: average_over_checkpoints(of[:, None])[:, 0], lambda of: of[:, -1]):
        before, after = (summary(of) for of in curves)
        gain = difference(after[:, None], before[:, None], mean, np.random.default_rng(0), paired=True)
        cells += [f"{before.mean():.2f}", f"{after.mean():.2f}"]
        cells.append(f"{gain.estimate:+.2f} ({gain.lower:+.2f}, {gain.upper:+.2f})")
    ends = {
        name: [np.median(forward_fill(r.metrics[key])[:, -1]) for r in (without, treated)]
        for name, key in MEASURED.items()
    }
    return cells + [f"{before:.3g} → {after:.3g}" for before, after in ends.values()]


def lines(arms: Arms, world: str, key: str) -> dict[str, tuple[NDArray, NDArray]]:
    """Every regularizer over training, the data sets of one world together."""
    tried = key.startswith("evaluation/")
    together: dict[str, list[Runs]] = {}
    for word, sides in arms.items():
        if world_of(word) == world:
            for runs in sides.values():
                together.setdefault(algorithm_name(runs.members[0].algorithm), []).append(runs)
    return {
        name: (
            of[0].evaluation_steps if tried else of[0].steps,
            np.concatenate([(runs.evaluations if tried else runs.metrics)[key] for runs in of]),
        )
        for name, of in together.items()
    }


if __name__ == "__main__":
    main(tyro.cli(Options))
