"""The members of one or of several runs, put together where only their seeds differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.reports.names import algorithm_name
from dr3.runs import Runs
from dr3.runs.member import differences

Curves = tuple[NDArray[Any], NDArray[Any]]  # steps (T,), values (members, T)


@dataclass(frozen=True)
class Group:
    """Members that differ in their seeds alone, of runs that are equally long."""

    name: str  # "DQN + DR3 0.03", and whatever else tells it from the other groups
    data: str
    regularized: bool
    members: list[tuple[int, int]]  # the run's place in the list, the member's number in that run
    seeds: list[int]
    diverged: int

    def gather(self, steps: Sequence[NDArray[Any]], columns: Sequence[Mapping[str, NDArray[Any]]], name: str) -> Curves:
        """One measurement of all members, from each run's steps and columns: NaN where a run has no such value."""
        runs = [run for run in dict.fromkeys(run for run, _ in self.members) if name in columns[run]]
        axis = np.unique(np.concatenate([steps[run] for run in runs])) if runs else np.zeros(0, np.int64)
        values = np.full((len(self.members), len(axis)), np.nan)
        for row, (run, number) in enumerate(self.members):
            if run in runs:
                values[row, np.searchsorted(axis, steps[run])] = columns[run][name][number]
        return axis, values


def group(runs: Sequence[Runs]) -> list[Group]:
    """The groups of all runs, in the order in which they first appear.

    Runs on other data, of another length or measured at other steps are not averaged together. A group is named by its
    algorithm, then by the settings, the data and at last the run, each only where groups differ in it.
    """
    settings = _settings(runs)
    several = len({one.config.data.name for one in runs}) > 1
    found: dict[Any, list[tuple[int, int]]] = {}
    names: dict[Any, str] = {}
    for place, one in enumerate(runs):
        data = one.config.data.name
        rhythm = (one.status["step"], one.config.metrics_every, one.config.evaluate_every)
        for number, member in enumerate(one.members):
            words = settings[place][number]
            key = (member.algorithm, words, data, rhythm)
            names[key] = ", ".join(filter(None, (algorithm_name(member.algorithm), words))) + (
                f" on {data}" if several else ""
            )
            found.setdefault(key, []).append((place, number))
    used = list(names.values())
    return [
        Group(
            name=name if used.count(name) == 1 else f"{name} ({runs[members[0][0]].path.name})",
            data=key[2],
            regularized=runs[members[0][0]].members[members[0][1]].regularizer is not None,
            members=members,
            seeds=[runs[run].members[number].seed for run, number in members],
            diverged=sum(str(number) in runs[run].status["diverged"] for run, number in members),
        )
        for (key, name), members in zip(names.items(), found.values(), strict=True)
    ]


def _settings(runs: Sequence[Runs]) -> list[list[str]]:
    """For every member of every run, the settings in which members of its method differ, as words."""
    everyone = [(place, number, member) for place, one in enumerate(runs) for number, member in enumerate(one.members)]
    words = [[""] * len(one) for one in runs]
    for method in {member.method.name for *_, member in everyone}:
        alike = [(place, number, member) for place, number, member in everyone if member.method.name == method]
        for (place, number, _), varying in zip(alike, differences([member for *_, member in alike]), strict=True):
            settings = (f"{key} {value}" for key, value in varying.items() if key not in ("regularizer", "seed"))
            words[place][number] = ", ".join(settings)
    return words
