"""Estimates of policies where not every action is allowed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.ope.acting import Acting


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
