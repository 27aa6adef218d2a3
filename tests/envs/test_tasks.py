from __future__ import annotations

import numpy as np
import pytest

from dr3.envs import TASKS, find_task, normalised_score
from dr3.errors import UserError


def test_the_ends_of_the_scale():
    for name, task in TASKS.items():
        assert normalised_score(name, task.minimum) == 0
        assert normalised_score(name, task.maximum) == 100
    np.testing.assert_allclose(
        normalised_score("hopper-full-replay-v2", np.array([-20.272305, 3234.3, 1607.0138475])), [0, 100, 50]
    )
    assert normalised_score("kitchen-mixed-v0", 3.0) == 75
    assert normalised_score("antmaze-large-play-v2", 1.0) == 100


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("halfcheetah-medium-expert-v0", "halfcheetah"),
        ("hopper_full_replay-v2", "hopper"),
        ("walker_mixed", "walker2d"),
        ("Walker2d-v5", "walker2d"),
        ("ant/d4rl", "ant"),
        ("antmaze-umaze-v2", "antmaze-umaze"),
        ("antmaze/medium-play", "antmaze-medium-play"),
        ("D4RL/antmaze/large-diverse-v1", "antmaze-large-diverse"),
        ("Ant_maze_hardest-maze_noisy_multistart_True_multigoal_False_sparse_fixed", "antmaze-large-play"),
        ("mini_kitchen_microwave_kettle_light_slider-v0", "kitchen-complete"),
        ("kitchen/partial", "kitchen-partial"),
        ("AntMaze_UMaze-v5", None),
        ("pointmaze/umaze", None),
        ("antler", None),
        ("CartPole-v1", None),
    ],
)
def test_names_that_speak_of_a_task(name, task):
    found = find_task(name)
    assert (found and found.name) == task


def test_an_unknown_task_is_refused():
    with pytest.raises(UserError, match=r"'pong'.*hopper"):
        normalised_score("pong", 3.0)
