from __future__ import annotations

import dataclasses
import io
import json

import numpy as np
import pytest
from rich.console import Console

from dr3.data import assemble, describe, sample_gridworld, table
from dr3.data.describe import Spread
from dr3.envs import gridworld
from dr3.errors import UserError

# Episodes of 1, 2 and 4 steps with returns 5, 1 and 10; the last one is cut.
ROWS = {
    "observations": np.array([[0, 0.5], [1, 2], [2, -1], [3, 7], [4, 1], [5, 0], [6, 3]]),
    "next_observations": np.array([[9, 0], [2, -1], [9, 1], [4, 1], [5, 0], [6, 3], [7, 5]], float),
    "actions": np.array([0, 1, 0, 1, 1, 1, 0]),
    "rewards": np.array([5.0, 0.0, 1.0, 1.0, 2.0, 3.0, 4.0]),
    "terminals": np.array([1, 0, 1, 0, 0, 0, 0]),
    "timeouts": np.array([0, 0, 0, 0, 0, 0, 1]),
}


def build(**changes):
    return assemble({**ROWS, **changes}, source="rows", name="rows", discount=0.5)


def faults(**changes):
    return describe(build(**changes)).faults


def test_sizes_and_spreads_by_hand():
    found = describe(build())
    assert (found.rows, found.episodes, found.terminals, found.timeouts) == (7, 3, 2, 1)
    assert found.episode_lengths == Spread(1.0, 1.5, 2.0, 3.0, 4.0, mean=7 / 3)
    assert found.episode_returns == Spread(1.0, 3.0, 5.0, 7.5, 10.0, mean=16 / 3)
    assert found.unknown_next_actions == 3
    assert found.reward_range == (0.0, 5.0)
    assert found.nonzero_rewards == pytest.approx(6 / 7)
    assert (found.observation_shape, found.observation_dtype) == ((2,), "float32")
    assert found.observation_range == (-1.0, 7.0)
    assert (found.action_space, found.action_counts, found.action_ranges) == ("2 discrete actions", (3, 4), None)
    assert found.faults == ("1 of 3 episodes have a single row.",)


def test_continuous_actions_show_the_range_of_each_dimension():
    found = describe(build(actions=np.linspace(-0.75, 0.75, 14).reshape(7, 2)))
    assert found.action_space == "2 continuous numbers from -1 to 1"
    assert found.action_counts is None
    assert found.action_ranges is not None
    np.testing.assert_allclose(found.action_ranges, [[-0.75, 0.75 - 1.5 / 13], [1.5 / 13 - 0.75, 0.75]], atol=1e-6)


def test_it_can_be_written_as_json():
    found = describe(build())
    assert json.loads(json.dumps(dataclasses.asdict(found)))["episode_returns"]["maximum"] == 10


def test_an_empty_table_is_refused():
    with pytest.raises(UserError, match="no rows"):
        describe(build().rows(slice(0)))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"observations": ROWS["observations"] * [1, 0]},
            "1 of 2 observation columns never change (the first is column 1).",
        ),
        ({"observations": np.ones((7, 2))}, "The observations are the same in every row."),
        (
            {"terminals": np.zeros(7), "timeouts": np.zeros(7)},
            "No row is a terminal or a time-out, so nothing in the log says where episodes end.",
        ),
        ({"rewards": np.zeros(7)}, "Every reward is 0, so there is nothing to prefer."),
        (
            {"rewards": np.full(7, 0.5), "terminals": np.zeros(7), "timeouts": ROWS["terminals"] + ROWS["timeouts"]},
            "Every reward is 0.5 and no episode ends in a terminal, so there is nothing to prefer.",
        ),
        (
            {"rewards": ROWS["rewards"] * 70},
            "Rewards reach 350, and values will be larger; train with --reward-scale 0.01.",
        ),
        (
            {"observations": ROWS["observations"] * [1, 100]},
            "1 of 2 observation columns are far from unit scale (the first is column 1: mean 179, deviation 245); "
            "train with --standardise.",
        ),
        (
            {"masks": np.eye(3)[ROWS["actions"]]},
            "These actions are never allowed by the masks: 2.",
        ),
        (
            {"masks": np.eye(2)[ROWS["actions"]]},
            "In 100% of the rows only one action is allowed, so there is nothing to choose.",
        ),
        (
            {"propensities": np.array([0.001, 1, 1, 1, 1, 1, 0.5])},
            "1 rows have a propensity below 0.01 (the least is 0.001): estimates that weigh rows by its "
            "inverse lean on few of them.",
        ),
        ({"num_actions": np.array(4)}, "Of 4 actions these were never taken: 2, 3."),
        (
            {"actions": np.array([[0.3, value] for value in np.linspace(-0.9, 0.9, 7)])},
            "Action dimension 0 uses only 0.00% of its range.",
        ),
        (
            {"actions": np.array([[-1.0], [1.0], [0.1], [0.2], [0.3], [0.4], [0.5]])},
            "Action dimension 0 lies exactly on a bound in 29% of the rows.",
        ),
        (
            {"returns": np.array([5, 0.5, 1, 4, 4, 5, 4.0]), "returns_discount": np.array(0.5)},
            "In 2 rows the return does not follow from the rewards (first in row 3: 4 instead of 3 at discount 0.5).",
        ),
    ],
)
def test_what_is_suspicious_is_said(changes, sentence):
    assert sentence in faults(**changes)
    assert sentence not in faults()


def test_copies_are_counted():
    columns = {field: np.tile(values, (2,) + (1,) * (values.ndim - 1)) for field, values in ROWS.items()}
    assert any(sentence.startswith("7 of 14 rows repeat an earlier row") for sentence in faults(**columns))


def test_a_next_observation_across_the_boundary_is_found():
    """The shift by one row that forgets the time-outs: s' of the last step is the reset of the next episode."""
    observations = np.random.default_rng(0).normal(size=(8, 3))
    columns = {
        "observations": observations,
        "next_observations": np.roll(observations, -1, axis=0),
        "actions": np.arange(8) % 2,
        "rewards": np.arange(8.0),
        "terminals": np.zeros(8),
        "timeouts": np.array([0, 1, 0, 0, 1, 0, 0, 1]),
    }
    (found,) = describe(assemble(columns, source="rows", name="rows")).faults
    assert found.startswith("In 2 of 2 episodes that do not end in a terminal")
    assert "row 1" in found

    del columns["next_observations"]
    assert not any("bootstrap" in sentence for sentence in describe(assemble(columns, source="r", name="r")).faults)


def test_after_a_terminal_the_next_episode_may_follow():
    """D4RL keeps the next episode's first state behind a terminal, where nothing reads it."""
    columns = {
        "observations": np.arange(6.0).reshape(6, 1),
        "next_observations": np.arange(1.0, 7).reshape(6, 1),
        "actions": np.arange(6) % 2,
        "rewards": np.arange(6.0),
        "terminals": np.array([0, 0, 1, 0, 0, 1]),
    }
    assert describe(assemble(columns, source="rows", name="rows")).faults == ()


@pytest.mark.parametrize("shorten", [lambda data: data, lambda data: data.subset(0.3, seed=0)])
def test_sampled_data_have_sound_boundaries_and_returns(shorten):
    data = shorten(sample_gridworld(gridworld("grid16smoothobs"), size=230))
    assert not any("return" in sentence or "bootstrap" in sentence for sentence in describe(data).faults)


def test_the_table_shows_every_part():
    screen = io.StringIO()
    Console(file=screen, width=120).print(table(describe(build(name=np.array("log [x]")))))
    for words in ["log [x]", "7 in 3 episodes", "1 | 1.5 | 2 | 3 | 4", "2 terminals", "action 1", "single row"]:
        assert words in screen.getvalue()


def test_a_constant_reward_prefers_long_episodes_where_some_end():
    """CartPole pays 1 a step until the pole falls."""
    assert not any("prefer" in sentence for sentence in faults(rewards=np.ones(7)))


def test_a_log_that_never_ends_and_marks_no_cuts_is_said():
    columns = {name: values for name, values in ROWS.items() if name not in ("timeouts", "next_observations")}
    columns |= {"terminals": np.zeros(7), "episodes": np.array([0, 0, 0, 1, 1, 1, 1])}
    found = describe(assemble(columns, source="rows", name="rows"))
    assert any(sentence.startswith("No row is a terminal and the log does not say") for sentence in found.faults)
    assert found.left_out == (("last row of an episode that was cut: s' is not logged", 2),)
    marked = columns | {"timeouts": np.array([0, 0, 1, 0, 0, 0, 1])}
    assert not any("No row is a terminal" in one for one in describe(assemble(marked, source="r", name="r")).faults)


def test_each_column_by_hand():
    found = describe(build(masks=np.array([[1, 1], [1, 1], [1, 0]] + [[1, 1]] * 4), propensities=np.full(7, 0.5)))
    assert found.columns is not None
    first = found.columns[0]
    assert (first.name, first.minimum, first.maximum, first.mean, first.missing) == ("column 0", 0, 5, 2.5, 0)
    assert first.deviation == pytest.approx((35 / 12) ** 0.5)
    assert found.allowed is not None
    assert found.allowed.shares == (
        1.0,
        pytest.approx(5 / 6),
    )  # of six: what is allowed behind the last row is not logged
    assert found.allowed.without_choice == pytest.approx(1 / 6)
    assert found.propensities is not None
    assert found.propensities.mean == 0.5
