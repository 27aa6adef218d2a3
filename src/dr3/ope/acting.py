"""What policies do at the rows of a log: all that an estimate of their values asks of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.faults import gaps
from dr3.data.frames import Observations, chunks
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.errors import UserError

ALLOWED = 1e-3  # the probability of forbidden actions that is taken for rounding

PolicyFunction = Callable[..., NDArray[Any]]
"""(n, *shape) observations -> what the policy does: (n,) actions or (n, A) probabilities of them where they are
discrete, (n, size) actions where they are continuous. Where the data have masks, it is given those of the same rows,
(n, A), as a second argument, if it takes one."""


@dataclass(frozen=True)
class Acting:
    """K policies at the N rows of a table. Deterministic ones are kept as actions, which are A times smaller."""

    names: tuple[str, ...]
    here: NDArray[Any]  # at s: (N, K) actions, (N, K, A) probabilities, or (N, K, size) continuous actions
    following: NDArray[Any]  # the same at s'
    logged: bool = False  # the last one is the policy that logged, known by what it did

    @classmethod
    def of(cls, policies: Mapping[str, PolicyFunction], data: Transitions) -> Acting:
        """Ask every policy, some rows at a time: an encoder's outputs for all pictures would fill the memory."""
        # The s' of most rows is the s of the next one, where the policy has been asked already.
        others = np.append(np.flatnonzero(data.episodes[1:] != data.episodes[:-1]), len(data) - 1)
        others = np.union1d(others, gaps(data))
        if data.masks is not None and data.next_masks is not None:  # and is asked again where more or less is allowed
            others = np.union1d(others, np.flatnonzero((data.next_masks[:-1] != data.masks[1:]).any(axis=1)))
        last = data.rows(others)
        here, there = (
            _together([_asked(name, policy, *seen, data) for name, policy in policies.items()], data)
            for seen in ((data.observations, data.masks), (last.next_observations, last.next_masks))
        )
        following = np.roll(here, -1, axis=0)
        following[others] = there
        return cls(tuple(policies), here, following)

    def __len__(self) -> int:
        return self.here.shape[1]

    def with_logged(self, data: Transitions, following: NDArray[Any]) -> Acting:
        """The same with the policy that logged as one more, the last: at s it does what it did."""
        here = np.concatenate([self.here, _like(self.here, data.actions)], axis=1)
        there = np.concatenate([self.following, _like(self.here, following)], axis=1)
        return Acting((*self.names, "logged"), here, there, logged=True)

    def probabilities(self, number: int, count: int) -> NDArray[np.float64]:
        """π(·|s) of one policy over `count` discrete actions: (N, A)."""
        said = self.here[:, number]
        return said.astype(np.float64) if said.ndim == 2 else np.eye(count)[said]


def _asked(
    name: str, policy: PolicyFunction, column: Observations, masks: NDArray[np.bool_] | None, data: Transitions
) -> NDArray[Any]:
    if not callable(policy):
        raise UserError(f"The policy {name} must be a function of observations, not {policy!r}.")
    if masks is not None and _takes_masks(policy):
        pairs = zip(chunks(column), chunks(masks), strict=True)
        answers = [np.asarray(policy(part, allowed)) for part, allowed in pairs]
    else:
        answers = [np.asarray(policy(part)) for part in chunks(column)]
    alike = len({one.shape[1:] for one in answers}) == 1 and answers[0].ndim and answers[0].dtype.kind in "biuf"
    said: NDArray[Any] = np.concatenate(answers) if alike else np.empty(0)  # which is refused
    space = data.action_space
    if isinstance(space, DiscreteActions):
        if said.ndim == 1:
            good = len(said) == len(column) and said.dtype.kind in "iu" and said.min() >= 0 and said.max() < space.count
        else:
            good = said.shape == (len(column), space.count) and bool((said >= 0).all())
            good = good and np.allclose(said.sum(axis=1), 1, atol=1e-3)
        wanted = f"whole numbers from 0 to {space.count - 1}, or probabilities of the {space.count} actions"
    else:
        good = said.shape == (len(column), space.size) and bool(np.isfinite(said).all())
        wanted = f"vectors of {space.size} finite numbers"
    if not good:
        raise UserError(f"The policy {name} must answer observations with {wanted}.")
    if masks is not None:
        shares = said if said.ndim == 2 else np.eye(masks.shape[1])[said]
        if (row := np.flatnonzero((shares * ~masks).sum(axis=1) > ALLOWED)).size:
            raise UserError(
                f"The policy {name} does what is not allowed in {len(row)} rows (the first: {row[0]}): let it take the "
                "masks (n, actions) as a second argument."
            )
    return said


def _takes_masks(policy: PolicyFunction) -> bool:
    try:
        inspect.signature(policy).bind(None, None)
    except TypeError:
        return False
    return True


def _together(said: Sequence[NDArray[Any]], data: Transitions) -> NDArray[Any]:
    space = data.action_space
    if not isinstance(space, DiscreteActions):
        return np.stack(said, axis=1).astype(np.float32)
    if all(one.ndim == 1 for one in said):
        return np.stack(said, axis=1).astype(np.uint8 if space.count < 256 else np.int32)
    probable = [one if one.ndim == 2 else np.eye(space.count, dtype=np.float32)[one] for one in said]
    return np.stack(probable, axis=1).astype(np.float32)


def _like(known: NDArray[Any], actions: NDArray[Any]) -> NDArray[Any]:
    """Logged actions in the form that the others are kept in: (N, 1, …)."""
    if known.ndim == 3 and actions.ndim == 1:
        actions = np.eye(known.shape[2], dtype=known.dtype)[actions]
    return actions[:, None].astype(known.dtype)
