from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dr3.data import load, replay_subset, write_npz
from dr3.data.subsets import ReplayPart
from dr3.data.transitions import DiscreteActions, Transitions, monte_carlo_returns
from dr3.errors import UserError


@pytest.fixture
def replay() -> Transitions:
    """1,000 rows in episodes of 8; the action of a row says which row it is."""
    rows = np.arange(1000)
    episodes = (rows // 8).astype(np.int32)
    ends = rows % 8 == 7
    rewards = np.ones(1000, np.float32)
    return Transitions(
        observations=rows[:, None].astype(np.float32),
        actions=rows.astype(np.int32),
        rewards=rewards,
        next_observations=rows[:, None].astype(np.float32) + 1,
        terminals=ends,
        timeouts=np.zeros(1000, np.bool_),
        next_actions=np.where(ends, 0, rows + 1).astype(np.int32),
        next_action_known=~ends,
        returns=monte_carlo_returns(rewards, episodes, 0.99),
        episodes=episodes,
        action_space=DiscreteActions(1000),
        returns_discount=0.99,
        name="replay",
    )


def test_a_percentage_is_the_first_rows_of_each_of_50_parts(replay) -> None:
    part = replay_subset(replay, "10%")  # two rows of every twenty
    assert part.actions.tolist() == [20 * file + row for file in range(50) for row in range(2)]
    assert part.name == "replay-10%"


def test_first_is_the_beginning(replay) -> None:
    assert replay_subset(replay, "first-10%").actions.tolist() == list(range(100))


def test_rows_at_an_edge_keep_what_the_replay_knows(replay) -> None:
    part = replay_subset(replay, "5%")  # one row of every twenty: every row is at an edge
    taken = part.actions.astype(np.int64)
    np.testing.assert_array_equal(part.next_observations[:, 0], taken + 1)
    inside = part.next_action_known
    np.testing.assert_array_equal(part.next_actions[inside], taken[inside] + 1)
    np.testing.assert_array_equal(part.returns, replay.returns[::20])


@pytest.mark.parametrize(
    ("word", "shares"),
    [
        ("1%", [0.01] * 50),
        ("first-10%", [1.0] * 5),
        ("first-14%", [1.0] * 7),  # as floats, 0.14 x 50 is 7.000000000000001
        ("first-1%", [0.5]),
        ("first-3%", [1.0, 0.5]),
        ("first-100%", [1.0] * 50),
        ("first-0.000000000001%", [0.0]),
    ],
)
def test_a_part_says_how_much_of_each_of_50_files_it_is(word, shares) -> None:
    assert ReplayPart.parse(word).of_files() == shares


@pytest.mark.parametrize("word", ["1", "0%", "101%", "last-10%", "first-", "%"])
def test_what_is_no_part_is_refused(replay, word) -> None:
    with pytest.raises(UserError, match="is no part of a replay"):
        replay_subset(replay, word)


def test_too_few_rows_are_refused(replay) -> None:
    with pytest.raises(UserError, match=r"1000 rows, too few for 1% of each of 50 parts"):
        replay_subset(replay, "1%")


def test_a_file_takes_settings(replay, tmp_path) -> None:
    file = tmp_path / "replay.npz"
    write_npz(file, replay)
    assert load(f"{file}:replay=first-10%").fingerprint() == replay_subset(replay, "first-10%").fingerprint()
    sampled = load(f"{file}:fraction=0.2:seed=1")
    assert sampled.fingerprint() == replay.subset(0.2, seed=1).fingerprint()
    assert sampled.source == f"{file}:fraction=0.2:seed=1"
    both = load(f"{file}:replay=10%:fraction=0.5")
    assert both.fingerprint() == replay_subset(replay, "10%").subset(0.5, seed=0).fingerprint()
    assert load(file).fingerprint() == dataclasses.replace(replay).fingerprint()


def test_different_rows_have_different_names(replay, tmp_path) -> None:
    file = tmp_path / "replay.npz"
    write_npz(file, replay)
    settings = ("", "replay=10%", "fraction=0.1", "fraction=0.1:seed=3", "trajectories=10%", "trajectories=10%:seed=3")
    names = [load(f"{file}:{setting}" if setting else file).name for setting in (*settings, "zero_rewards=true")]
    assert names == [
        "replay",
        "replay-10%",
        "replay-iid-10%-seed0",
        "replay-iid-10%-seed3",
        "replay-trajectories-10%-seed0",
        "replay-trajectories-10%-seed3",
        "replay-zero-rewards",
    ]
    assert replay.subset(0.007, seed=0).name == "replay-iid-0.7%-seed0"
    assert replay.subset(1.0, seed=3).name == "replay"  # all rows, whatever the seed


def test_an_unknown_setting_of_a_file_is_refused(replay, tmp_path) -> None:
    file = tmp_path / "replay.npz"
    write_npz(file, replay)
    with pytest.raises(UserError, match="has no setting 'size'"):
        load(f"{file}:size=3")


def test_the_sample_is_one_percent_of_a_replay() -> None:
    data = load("sample:minatar-breakout-1%")
    assert len(data) == 10_000
    assert data.world == "minatar/breakout"
    assert data.observations.shape == (10_000, 10, 10, 4)
    assert load("sample:minatar-breakout-1%:fraction=0.1").observations.shape == (1_000, 10, 10, 4)
    # The paddle is one cell of the lowest row, and so is the ball one cell of the board.
    assert (data.observations[:][:, 9, :, 0].sum(axis=1) == 1).all()
    assert (data.observations[:][..., 1].sum(axis=(1, 2)) == 1).all()


def test_an_unknown_sample_is_refused() -> None:
    with pytest.raises(UserError, match=r"no sample 'pong'; there are minatar-breakout-1%"):
        load("sample:pong")


@pytest.mark.parametrize("word", ["fraction=0.5:seed=-1", "trajectories=50%:seed=-1"])
def test_a_seed_that_is_none_is_refused(replay, tmp_path, word) -> None:
    write_npz(tmp_path / "replay.npz", replay)
    with pytest.raises(UserError, match="A seed is a whole number from 0 to 4294967295, not -1"):
        load(f"{tmp_path / 'replay.npz'}:{word}")
