"""What must hold of a logged column, and the one sentence that says where it does not.

Every check takes the name of the source (usually a file) and of the field, so that the sentence can name both. Rows are
counted from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dr3.data.transitions import ContinuousActions, DiscreteActions
from dr3.errors import UserError

Values = NDArray[Any]

PROBABILITY_TOLERANCE = 1e-4  # float32 probabilities of a few hundred actions sum to 1 only about so well
MOST_ACTIONS = 65_536  # a network has an output for each of them; a larger number is an identifier, or a mistake


def refuse(source: str, sentence: str) -> NoReturn:
    raise UserError(f"{source}: {sentence}")


def check_numbers(source: str, field: str, values: Values, rows: int) -> Values:
    """`rows` rows of booleans, integers or floats, none NaN or infinite; floats come back as float32."""
    if values.dtype.kind not in "biuf":
        refuse(source, f"'{field}' holds values of type {values.dtype}, but only real numbers can be read.")
    if values.ndim == 0 or len(values) != rows:
        found = "a single value" if values.ndim == 0 else f"{len(values)} rows"
        refuse(source, f"'{field}' has {found}, but 'observations' has {rows}; each step needs a row in every field.")
    if values.dtype.kind != "f":
        return values
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused as such
        single = values.astype(np.float32)
    broken = ~np.isfinite(single)
    if broken.any():
        row, value = _first(broken, values)
        refuse(source, f"row {row} of '{field}' is {value}, but every number must be finite (as a float32).")
    return single


def check_vector(source: str, field: str, values: Values, rows: int) -> Values:
    """One finite number for each row; a trailing axis of length 1 is dropped, as some logs keep it: (N,)."""
    numbers = check_numbers(source, field, values, rows)
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        return numbers[:, 0]
    if numbers.ndim != 1:
        refuse(source, f"'{field}' has shape {numbers.shape}, but it needs one number for each row: ({rows},).")
    return numbers


def check_scalar(source: str, field: str, values: Values) -> float:
    """A single finite number."""
    if values.size != 1 or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        refuse(source, f"'{field}' must be a single finite number.")
    return values.reshape(-1)[0].item()


def check_booleans(source: str, field: str, values: Values, rows: int) -> NDArray[np.bool_]:
    """True and false, or the numbers 0 and 1."""
    flags = check_vector(source, field, values, rows)
    if flags.dtype.kind != "b":
        odd = (flags != 0) & (flags != 1)
        if odd.any():
            row, value = _first(odd, flags)
            refuse(source, f"row {row} of '{field}' is {value}, but it must be true or false (or 1 or 0).")
    return flags.astype(np.bool_)


def check_shape(source: str, field: str, values: Values, expected: Sequence[int], like: str) -> None:
    if values.shape != tuple(expected):
        refuse(source, f"'{field}' has shape {values.shape}, but '{like}' asks for {tuple(expected)}.")


def check_fits_in_32_bits(source: str, field: str, values: Values) -> None:
    """Integers that 32 bits can hold: a device has no more by default, and would let them wrap around silently."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize <= 4:
        return
    limits = np.iinfo(np.int32 if values.dtype.kind == "i" else np.uint32)
    wide = (values < limits.min) | (values > limits.max)
    if wide.any():
        row, value = _first(wide, values)
        refuse(source, f"row {row} of '{field}' holds {value}, which is beyond 32 bits; store such numbers as floats.")


def check_survives(source: str, field: str, values: Values, cast: Values, like: str) -> None:
    """Numbers that became those of another column's type must still be the same."""
    changed = values != cast
    if changed.any():
        row, value = _first(changed, values)
        refuse(source, f"row {row} of '{field}' holds {value}, but '{like}' is of type {cast.dtype}, which cannot.")


def check_number_of_actions(source: str, field: str, count: int) -> None:
    if count > MOST_ACTIONS:
        refuse(source, f"'{field}' is for {count} actions, but there can be {MOST_ACTIONS} discrete ones at most.")


def check_actions(
    source: str,
    field: str,
    actions: Values,
    space: DiscreteActions | ContinuousActions,
    *,
    only: NDArray[np.bool_] | None = None,
) -> None:
    """Inside the action space; `only` restricts the check to some rows. Floats are float32 and the shape is right."""
    checked = np.ones(len(actions), np.bool_) if only is None else only
    if isinstance(space, DiscreteActions):
        fraction = checked & (actions != np.floor(actions))
        if fraction.any():
            row, value = _first(fraction, actions)
            refuse(
                source,
                f"row {row} of '{field}' is {value}, but a single number for each row is a discrete action and must be "
                f"whole; store continuous actions with shape (rows, size).",
            )
        outside = checked & ((actions < 0) | (actions >= space.count))
        if outside.any():
            row, value = _first(outside, actions)
            refuse(source, f"row {row} of '{field}' is {value}, but the actions go from 0 to {space.count - 1}.")
    else:
        # The bounds are rounded as the actions were: in float32, 0.4 is more than 0.4.
        outside = checked[:, None] & ((actions < np.float32(space.low)) | (actions > np.float32(space.high)))
        if outside.any():
            row, value = _first(outside, actions)
            refuse(
                source,
                f"row {row} of '{field}' holds {value}, but the actions go from {space.low} to {space.high}; set "
                f"'action_low' and 'action_high' if the range is another (of an HDF5 file: FILE:action_low=-2).",
            )


def check_contiguous(source: str, episodes: Values) -> None:
    """The rows of an episode follow each other."""
    starts = np.flatnonzero(np.r_[True, episodes[1:] != episodes[:-1]])
    seen: set[int] = set()
    for row in starts:
        episode = int(episodes[row])
        if episode in seen:
            refuse(source, f"row {row} of 'episodes' goes back to episode {episode}, but its rows must be contiguous.")
        seen.add(episode)


def check_ends(source: str, field: str, ends: NDArray[np.bool_], episodes: Values) -> None:
    """An end, be it a terminal or a time-out, is on the last row of its episode."""
    early = np.flatnonzero(ends[:-1] & (episodes[1:] == episodes[:-1]))
    if len(early):
        row = early[0]
        refuse(source, f"row {row} of '{field}' ends episode {episodes[row]}, but 'episodes' says it goes on.")


def check_probabilities(source: str, field: str, values: Values, *, only: NDArray[np.bool_]) -> None:
    """Rows of probabilities; `only` says which rows are used at all."""
    negative = only[:, None] & (values < 0)
    if negative.any():
        row, value = _first(negative, values)
        refuse(source, f"row {row} of '{field}' holds {value}, but a probability is never negative.")
    sums = values.sum(axis=1, dtype=np.float64)
    off = only & (np.abs(sums - 1) > PROBABILITY_TOLERANCE)
    if off.any():
        row, value = _first(off, sums)
        refuse(source, f"row {row} of '{field}' sums to {value:.6g}, but probabilities must sum to 1.")


def check_masks(
    source: str, field: str, values: Values, shape: tuple[int, ...], *, only: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """True where an action is allowed, and at least one in each row: (N, actions); `only` says which rows are used."""
    numbers = check_numbers(source, field, values, shape[0])
    if numbers.shape != shape:
        refuse(
            source,
            f"'{field}' has shape {numbers.shape}, but with {shape[1]} actions it needs {shape}.",
        )
    odd = (numbers != 0) & (numbers != 1)
    if odd.any():
        row, value = _first(odd, numbers)
        refuse(source, f"row {row} of '{field}' holds {value}, but it must be true or false (or 1 or 0).")
    allowed = numbers.astype(np.bool_)
    empty = ~allowed.any(axis=1) & (True if only is None else only)
    if empty.any():
        refuse(source, f"row {int(np.argmax(empty))} of '{field}' allows no action at all.")
    return allowed


def check_allowed(source: str, field: str, masks: NDArray[np.bool_], actions: Values) -> None:
    """The action that was taken is one that was allowed."""
    forbidden = ~masks[np.arange(len(actions)), actions.astype(np.intp)]
    if forbidden.any():
        row = int(np.argmax(forbidden))
        refuse(
            source,
            f"row {row} of '{field}' forbids action {actions[row]}, which was taken ({forbidden.sum()} such rows); "
            "mend the mask, or leave these rows out.",
        )


def check_propensities(source: str, field: str, values: NDArray[np.float32], most: float) -> None:
    """The probability of an action that was taken is above 0, and at most 1 (a density has no such bound)."""
    outside = (values <= 0) | (values > most)
    if outside.any():
        row, value = _first(outside, values)
        bound = "above 0" if np.isinf(most) else "above 0 and at most 1"
        refuse(source, f"row {row} of '{field}' is {value}, but the probability of a taken action is {bound}.")


def _first(bad: NDArray[np.bool_], values: Values) -> tuple[int, Any]:
    """The row of the first bad entry, and the entry."""
    where = int(np.argmax(bad))  # in the flattened order
    return where // bad[0].size, values.reshape(-1)[where]
