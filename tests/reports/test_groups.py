from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from dr3.reports.groups import group
from dr3.runs import Runs


@pytest.fixture
def second(copied_run):
    """A function that makes another run like the first, with its configuration changed."""

    def make(change, name="second"):
        folder = shutil.copytree(copied_run, copied_run.parent / name)
        config = json.loads((folder / "config.json").read_text())
        change(config)
        (folder / "config.json").write_text(json.dumps(config))
        return Runs(folder)

    return make


def test_members_that_differ_in_their_seeds_alone_are_together(copied_run):
    (plain, dr3) = group([Runs(copied_run)])
    assert (plain.name, plain.seeds, plain.regularized) == ("DQN", [0, 1], False)
    assert (dr3.name, dr3.seeds, dr3.regularized) == ("DQN + DR3 0.1", [0, 1], True)
    assert dr3.members == [(0, 2), (0, 3)]


def test_equal_runs_of_other_seeds_are_put_together(copied_run, second):
    def other_seeds(config):
        for member in config["members"]:
            member["seed"] += 2

    runs = [Runs(copied_run), second(other_seeds)]
    (plain, _) = group(runs)
    assert plain.seeds == [0, 1, 2, 3]
    steps, values = plain.gather([one.steps for one in runs], [one.metrics for one in runs], "q/data_mean")
    assert steps.tolist() == [0, 10, 20, 30, 40]
    np.testing.assert_array_equal(values[:2], runs[0].metrics["q/data_mean"][:2])
    np.testing.assert_array_equal(values[:2], values[2:])  # a copy of the same numbers


def test_what_tells_groups_apart_is_in_their_names(copied_run, second):
    first = Runs(copied_run)
    rate = second(lambda config: [m["method"].update(learning_rate=0.5) for m in config["members"]], "rate")
    names = [one.name for one in group([first, rate])]
    assert names[0] == "DQN, learning_rate 0.01"
    assert names[2] == "DQN, learning_rate 0.5"
    other = second(lambda config: config["data"].update(name="elsewhere"), "data")
    assert group([first, other])[2].name == "DQN on elsewhere"
    rhythm = second(lambda config: config.update(metrics_every=20), "rhythm")
    assert [one.name for one in group([first, rhythm])][::2] == ["DQN (run)", "DQN (rhythm)"]


def test_a_run_without_a_column_leaves_a_gap(copied_run):
    runs = Runs(copied_run)
    steps, values = group([runs])[0].gather([runs.steps], [runs.metrics], "no/such")
    assert steps.shape == (0,)
    assert values.shape == (2, 0)
