"""Estimates of policies where not every action is allowed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.ope.acting import Acting
from dr3.ope.behavior import behavior_of
from dr3.ope.direct import StateTable


@pytest.fixture
def masked(logged):
    """The last action is allowed where it was taken, and at every third row; what follows a row is its next row."""
    masks = np.ones((len(logged), 3), np.bool_)
    masks[:, 2] = (logged.actions == 2) | (np.arange(len(logged)) % 3 == 0)
    following = np.roll(masks, -1, axis=0) | logged.terminals[:, None]
    seen = np.roll(logged.observations, -1, axis=0)
    return dataclasses.replace(logged, next_observations=seen, masks=masks, next_masks=following)


def test_policies_are_asked_with_the_masks_of_s_and_of_s_prime(masked):
    acting = Acting.of({"last": lambda seen, masks: np.where(masks[:, 2], 2, 0).astype(np.int32)}, masked)
    np.testing.assert_array_equal(acting.here[:, 0] == 2, masked.masks[:, 2])
    going = ~masked.terminals
    np.testing.assert_array_equal((acting.following[:, 0] == 2)[going], masked.next_masks[going, 2])


def test_one_that_does_not_look_at_masks_may_do_only_what_is_allowed(masked):
    acting = Acting.of({"first": lambda seen: np.zeros(len(seen), np.int32)}, masked)
    assert (acting.here == 0).all()
    with pytest.raises(UserError, match=r"The policy last does what is not allowed in .* rows") as refused:
        Acting.of({"last": lambda seen: np.full(len(seen), 2)}, masked)
    assert "second argument" in str(refused.value)


def test_what_is_allowed_is_part_of_a_state_that_is_solved_for(masked):
    few = dataclasses.replace(masked, observations=np.zeros_like(masked.observations[:, :1]))
    few = dataclasses.replace(few, next_observations=few.observations)
    table = StateTable.of(few)
    assert table is not None
    assert table.count == 2  # one observation, with the last action allowed or not
    np.testing.assert_array_equal(table.states == table.states[np.argmax(few.masks[:, 2])], few.masks[:, 2])


def test_an_action_that_was_not_logged_is_drawn_from_those_allowed(masked):
    only_last = np.tile(np.arange(3) == 2, (len(masked), 1))
    unknown = dataclasses.replace(
        masked, next_action_known=np.zeros(len(masked), bool), next_masks=only_last, propensities=None
    )
    # States that s' is and s never was: the log's frequencies say nothing there.
    apart = dataclasses.replace(unknown, observations=np.zeros((len(masked), 1), np.float32))
    apart = dataclasses.replace(apart, next_observations=np.ones((len(masked), 1), np.float32))
    assert (behavior_of(apart).following == 2).all()
