from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dr3.data import Frames, concatenate, load, trajectory_subset, without_rewards, write_npz
from dr3.data.assemble import assemble
from dr3.errors import UserError


def log(first_frame: int, episodes: int = 2, length: int = 3, *, name: str):
    """Frame numbers are pixel values; a reward of 1 at each episode's end."""
    frames = (first_frame + np.arange(episodes * (length + 1), dtype=np.uint8))[:, None, None] * np.ones(
        (1, 2, 2), "u1"
    )
    now = (np.arange(episodes)[:, None] * (length + 1) + np.arange(length)).ravel().astype(np.int32)
    last = np.tile(np.arange(length) == length - 1, episodes)
    columns = {
        "observations": Frames(frames, now),
        "next_observations": Frames(frames, now + 1),
        "actions": np.linspace(-1, 1, episodes * length * 2, dtype=np.float32).reshape(-1, 2),
        "rewards": last.astype(np.float32),
        "terminals": np.zeros(len(now), bool),
        "timeouts": last,
    }
    return assemble(columns, source=name, name=name)


@pytest.fixture
def files(tmp_path):
    prior, task = log(0, name="prior"), log(100, episodes=4, name="task")
    write_npz(tmp_path / "prior.npz", prior)
    write_npz(tmp_path / "task.npz", task)
    return tmp_path, prior, task


def test_rows_of_both_with_frames_once_and_episodes_numbered_anew() -> None:
    both = concatenate([log(0, name="prior"), log(100, name="task")])
    assert isinstance(both.observations, Frames)
    assert both.observations[:][:, 0, 0].tolist() == [0, 1, 2, 4, 5, 6, 100, 101, 102, 104, 105, 106]
    assert both.next_observations[:][:, 0, 0].tolist() == [1, 2, 3, 5, 6, 7, 101, 102, 103, 105, 106, 107]
    assert isinstance(both.next_observations, Frames)
    assert both.observations.stored is both.next_observations.stored
    assert len(both.observations.stored) == 16
    assert both.episodes.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert both.name == "prior+task"


def test_a_part_of_a_table_brings_only_its_own_frames() -> None:
    both = concatenate([log(0, name="prior").rows(slice(3)), log(100, name="task")])
    assert isinstance(both.observations, Frames)
    assert both.observations.stored[:, 0, 0].tolist() == [0, 1, 2, 3, *range(100, 108)]
    assert both.episodes.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_plain_arrays_and_frames_become_plain_arrays() -> None:
    frames = log(100, name="task")
    plain = dataclasses.replace(
        frames, observations=frames.observations[:], next_observations=frames.next_observations[:]
    )
    both = concatenate([plain, frames])
    assert isinstance(both.observations, np.ndarray)
    np.testing.assert_array_equal(both.observations[:6], both.observations[6:])


def test_tables_that_differ_are_refused() -> None:
    one, other = log(0, name="prior"), log(100, name="task")
    with pytest.raises(UserError, match=r"prior and task .* discounts of the returns are 0.99 and 0.5"):
        concatenate([one, dataclasses.replace(other, returns_discount=0.5)])
    with pytest.raises(UserError, match=r"their observations are \(2, 2\) and \(2,\)"):
        concatenate([one, dataclasses.replace(other, observations=np.zeros((6, 2), np.uint8))])


def test_prior_data_has_no_rewards_and_no_returns() -> None:
    table = without_rewards(log(0, name="prior"))
    assert not table.rewards.any()
    assert not table.returns.any()


def test_a_share_of_the_trajectories_is_whole_episodes() -> None:
    table = log(0, episodes=20, name="task")
    quarter = trajectory_subset(table, "25%", seed=0)
    episodes, lengths = np.unique(quarter.episodes, return_counts=True)
    assert len(episodes) == 5
    assert (lengths == 3).all()
    assert quarter.episodes.tolist() == sorted(quarter.episodes.tolist())
    assert trajectory_subset(table, "25%", seed=1).episodes.tolist() != quarter.episodes.tolist()
    assert trajectory_subset(table, "100%", seed=0).fingerprint() == table.fingerprint()
    assert len(trajectory_subset(table, "1%", seed=0)) == 3  # at least one
    for word in ("0%", "101%", "5", "first-5%"):
        with pytest.raises(UserError, match="no share of the episodes"):
            trajectory_subset(table, word, seed=0)


def test_files_joined_by_a_plus_each_with_its_settings(files) -> None:
    folder, prior, task = files
    word = f"{folder}/prior.npz:zero_rewards=true+{folder}/task.npz:trajectories=50%:seed=1"
    both = load(word)
    expected = concatenate([without_rewards(prior), trajectory_subset(task, "50%", seed=1)])
    assert both.fingerprint() == expected.fingerprint()
    assert both.source == word
    assert both.rewards.tolist() == [0] * 6 + [0, 0, 1, 0, 0, 1]


def test_a_file_whose_name_holds_a_plus_is_found(files) -> None:
    folder, prior, _ = files
    write_npz(folder / "a+b.npz", prior)
    assert load(folder / "a+b.npz").fingerprint() == prior.fingerprint()


def test_a_table_without_masks_allows_every_action_and_propensities_need_all() -> None:
    columns = {
        "observations": np.eye(3),
        "actions": np.array([0, 1, 1]),
        "rewards": np.ones(3),
        "terminals": np.array([0, 0, 1]),
        "propensities": np.full(3, 0.5),
    }
    plain = assemble(columns, source="plain", name="plain")
    masked = assemble(columns | {"masks": np.array([[1, 0], [1, 1], [0, 1]])}, source="masked", name="masked")
    both = concatenate([plain, masked])
    assert both.masks is not None
    assert both.next_masks is not None
    assert both.propensities is not None
    assert masked.masks is not None
    assert masked.next_masks is not None
    assert both.masks.tolist() == [[True, True]] * 3 + masked.masks.tolist()
    assert both.next_masks.tolist() == [[True, True]] * 3 + masked.next_masks.tolist()
    assert both.propensities.tolist() == [0.5] * 6
    unknown = dataclasses.replace(plain, propensities=None)
    assert concatenate([masked, unknown]).propensities is None
    assert concatenate([plain, unknown]).masks is None
