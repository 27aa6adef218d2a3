"""Every figure and table of the paper, in the order of its captions, and then the questions that it leaves."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from dr3.errors import UserError
from dr3.paper.experiments.atari_figures import ATARI_FIGURES
from dr3.paper.experiments.atari_tables import ATARI_TABLES
from dr3.paper.experiments.continuous_experiments import CONTINUOUS
from dr3.paper.experiments.declaration import Experiment
from dr3.paper.experiments.gridworld import GRIDWORLD_FIGURES
from dr3.paper.experiments.manipulation import COG
from dr3.paper.experiments.questions import QUESTIONS
from dr3.paper.experiments.settings import HYPERPARAMETERS, NORMALISERS


def _place(experiment: Experiment) -> tuple[bool, str, int]:
    """Figures before tables, the main text before the appendices, in order of number."""
    kind, section, number = re.fullmatch(r"(figure|table)-(?:([A-F])\.)?(\d+)", experiment.id).groups()  # ty: ignore
    return kind == "table", section or "", int(number)


EXPERIMENTS: dict[str, Experiment] = {
    experiment.id: experiment
    for experiment in sorted(
        (*ATARI_FIGURES, *ATARI_TABLES, *CONTINUOUS, *GRIDWORLD_FIGURES, COG, HYPERPARAMETERS, NORMALISERS), key=_place
    )
}

# What the paper leaves open: known by a word, and run by --all too.
OPEN_QUESTIONS: dict[str, Experiment] = {experiment.id: experiment for experiment in QUESTIONS}
ALL: dict[str, Experiment] = EXPERIMENTS | OPEN_QUESTIONS


def find(ids: Iterable[str]) -> list[Experiment]:
    """The experiments of these ids, each once."""
    found = []
    for word in dict.fromkeys(ids):
        if word not in ALL:
            near = difflib.get_close_matches(word, ALL, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UserError(f"The paper has no {word!r}; {hint}`dr3 reproduce --list` names them all.")
        found.append(ALL[word])
    return found
