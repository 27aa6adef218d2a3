"""Columns that are in memory already."""

from __future__ import annotations

import numpy as np
import pytest

from dr3.data import DiscreteActions, assemble
from dr3.errors import UserError

LISTS = {
    "observations": [[0.0], [1.0], [2.0]],
    "actions": [0, 1, 0],
    "rewards": [0.0, 0.0, 1.0],
    "terminals": [False, False, True],
}


def test_lists_are_as_good_as_arrays():
    from_lists = assemble(LISTS, source="memory", name="mine")
    arrays = {name: np.asarray(column) for name, column in LISTS.items()}
    assert from_lists.fingerprint() == assemble(arrays, source="memory", name="mine").fingerprint()
    np.testing.assert_array_equal(from_lists.next_observations[:2], [[1.0], [2.0]])
    assert (from_lists.name, from_lists.action_space) == ("mine", DiscreteActions(2))


def test_rows_of_different_shapes_are_refused():
    with pytest.raises(UserError, match="memory: 'observations' has rows of different shapes"):
        assemble({**LISTS, "observations": [[0.0], [1.0, 2.0], [2.0]]}, source="memory", name="mine")


def test_text_may_be_plain():
    table = assemble({**LISTS, "name": "theirs", "world": "Chain-v0"}, source="memory", name="mine")
    assert (table.name, table.world) == ("theirs", "Chain-v0")


def test_text_in_the_place_of_numbers_is_refused():
    with pytest.raises(UserError, match="memory: 'rewards' holds values of type"):
        assemble({**LISTS, "rewards": "high"}, source="memory", name="mine")
