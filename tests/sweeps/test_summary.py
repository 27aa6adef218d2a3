"""The table of a sweep, of run folders whose returns are written by hand."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from dr3.cli.sweep import _table_of_returns
from dr3.methods import DQN
from dr3.stats import Interval
from dr3.sweeps import InProcess, SummaryRow, Task, run_tasks, summarise

TASK = Task("grid16smoothobs:size=64", DQN(hidden=(4,), batch_size=4), (None,), (0, 1), 6, env=None, metrics_every=6)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swept")
    assert run_tasks([TASK], folder, engine=InProcess(), show=False).failures == {}
    return folder


@pytest.fixture
def table(out):
    """The only row of the table of a run whose two seeds have these returns at steps 0, 2, 4 and 6."""

    def found(*seeds, diverged):
        folder = out / TASK.name
        rows = [
            {"step": 2 * number, "member": member, "returns": [value], "evaluation/return": value}
            for member, values in enumerate(seeds)
            for number, value in enumerate(values)
        ]
        (folder / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        config = json.loads((folder / "config.json").read_text()) | {"evaluate_every": 2}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "status.json").write_text(json.dumps({"step": 6, "finished": True, "diverged": diverged}))
        (row,) = summarise([TASK], out)
        return row

    return found


def test_the_untrained_policy_is_in_no_average(table):
    row = table([99, 1, 2, 3], [99, 3, 4, 5], diverged={})
    assert (row.data, row.algorithm, row.seeds, row.diverged) == (TASK.data, "dqn", 2, 0)
    assert row.final.estimate == (3 + 5) / 2
    assert row.average.estimate == (2 + 4) / 2


def test_a_seed_that_diverged_keeps_its_last_return_and_is_counted(table):
    row = table([0, 1, 2, 3], [0, 9], diverged={"1": 3})
    assert (row.seeds, row.diverged) == (2, 1)
    assert row.final.estimate == (3 + 9) / 2
    assert row.average.estimate == (2 + 9) / 2
    assert (row.final.lower, row.final.upper) == (3, 9)


def test_a_seed_that_diverged_before_it_was_tried_again_keeps_the_return_of_the_untrained_policy(table):
    row = table([0, 1, 2, 3], [7], diverged={"1": 1})
    assert (row.final.estimate, row.average.estimate) == ((3 + 7) / 2, (2 + 7) / 2)


def test_seeds_that_all_diverged_are_averaged_over_all_of_training(table):
    # As if tried at 2, 4 and 6: (1 + 4 + 4) / 3 and (2 + 5 + 5) / 3.
    row = table([0, 1, 4], [0, 2, 5], diverged={"0": 5, "1": 5})
    assert row.diverged == 2
    assert row.final.estimate == (4 + 5) / 2
    assert row.average.estimate == (3 + 4) / 2


def test_a_seed_that_was_never_tried_leaves_no_mean(table):
    row = table([0, 1, 2, 3], [], diverged={"1": 0})
    assert (row.seeds, row.diverged, row.final, row.average) == (2, 1, None, None)


def printed(*rows: SummaryRow) -> list[list[str]]:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(_table_of_returns(list(rows)))
    return [line.split() for line in capture.get().splitlines()]


def test_the_column_of_diverged_seeds_is_there_only_where_some_diverged():
    healthy = SummaryRow("grid", "dqn", 5, 0, Interval(2, 1, 3), Interval(1.5, 1, 2))
    ill = SummaryRow("grid", "dqn+dr3:0.1", 5, 2, None, None)
    assert ["data", "algorithm", "seeds", "final", "return", "average", "return"] in printed(healthy)
    assert ["grid", "dqn", "5", "2", "(1,", "3)", "1.5", "(1,", "2)"] in printed(healthy)
    assert ["grid", "dqn", "5", "0", "2", "(1,", "3)", "1.5", "(1,", "2)"] in printed(healthy, ill)
    assert ["grid", "dqn+dr3:0.1", "5", "2", "–", "–"] in printed(healthy, ill)


def test_the_mean_of_a_single_seed_is_printed_without_limits():
    alone = Interval(2, float("nan"), float("nan"))
    assert ["grid", "dqn", "1", "2", "(–)", "2", "(–)"] in printed(SummaryRow("grid", "dqn", 1, 0, alone, alone))
