from __future__ import annotations

import numpy as np
import pytest

from dr3.collect import learning_curve
from dr3.data import Transitions, assemble
from dr3.errors import UserError


def replay(*episodes: tuple[int, float, bool]) -> Transitions:
    """Of episodes (length, last reward, whether it ended in a terminal)."""
    last = np.cumsum([length for length, *_ in episodes]) - 1
    steps = last[-1] + 1
    rewards, terminals, timeouts = np.ones(steps, np.float32), np.zeros(steps, bool), np.zeros(steps, bool)
    for row, (_, reward, ended) in zip(last, episodes, strict=True):
        rewards[row], terminals[row], timeouts[row] = reward, ended, not ended
    columns = {"observations": np.zeros((steps, 1), np.float32), "actions": np.zeros(steps, np.int32)}
    columns |= {"next_observations": columns["observations"], "rewards": rewards}
    return assemble(columns | {"terminals": terminals, "timeouts": timeouts}, source="here", name="here")


def test_returns_are_by_the_step_at_which_an_episode_ended() -> None:
    # Ends at steps 2, 5, 6 and 12, with the returns 1 + 9, 2 - 2, 7 and 5 + 3.
    curve = learning_curve(replay((2, 9, True), (3, -2, True), (1, 7, True), (6, 3, True)), points=4)
    assert curve.steps.tolist() == [3, 6, 9, 12]
    assert curve.episodes.tolist() == [1, 2, 0, 1]
    np.testing.assert_array_equal(curve.returns, [10, 3.5, np.nan, 8])


def test_episodes_that_the_end_of_the_replay_cut_are_left_out_and_those_at_a_time_limit_are_not() -> None:
    cut = learning_curve(replay((2, 1, True), (4, 1, True), (3, 1, False), (3, 1, False)), points=1)
    assert cut.episodes.tolist() == [4]  # two of one length look like a time limit
    cut = learning_curve(replay((2, 1, True), (4, 1, True), (3, 1, False), (2, 1, False)), points=1)
    assert (cut.episodes.tolist(), cut.returns.tolist()) == ([2], [3.0])
    limit = learning_curve(replay((4, 1, False), (4, 1, False), (2, 1, False)), points=1)
    assert (limit.episodes.tolist(), limit.returns.tolist()) == ([2], [4.0])


def test_a_curve_has_at_least_one_point_and_no_more_than_steps() -> None:
    for points in (0, 3):
        with pytest.raises(UserError, match="points must be between 1 and 2"):
            learning_curve(replay((2, 1, True)), points=points)
