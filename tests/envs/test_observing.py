from __future__ import annotations

import numpy as np

from dr3.envs import flatten


def test_parts_follow_in_the_order_of_their_names():
    goal = {"kettle": np.array([[5.0, 6.0]]), "burner": np.array(4.0)}
    seen = {
        "observation": np.array([7.0, 8.0]),
        "desired_goal": goal,
        "achieved_goal": (np.array([1]), np.array([2, 3])),
    }
    np.testing.assert_array_equal(flatten(seen), np.arange(1, 9))


def test_columns_are_flattened_row_by_row():
    column = {"b": np.arange(12).reshape(3, 2, 2), "a": np.array([10, 20, 30])}
    np.testing.assert_array_equal(flatten(column, rows=3)[1], [20, 4, 5, 6, 7])


def test_what_has_no_parts_keeps_its_shape():
    assert flatten(np.zeros((84, 84, 3), np.uint8)).shape == (84, 84, 3)


def test_it_is_gymnasiums_order():
    import gymnasium

    space = gymnasium.spaces.Dict({name: gymnasium.spaces.Box(0, 1, (2,)) for name in ("z", "a", "m")})
    seen = space.sample()
    np.testing.assert_array_equal(flatten(seen), gymnasium.spaces.flatten(space, seen))
