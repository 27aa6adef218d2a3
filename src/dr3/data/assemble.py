"""From the columns that a log holds to the whole table: what is missing is derived, what is wrong is refused."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import (
    MOST_ACTIONS,
    Values,
    check_actions,
    check_allowed,
    check_booleans,
    check_contiguous,
    check_ends,
    check_fits_in_32_bits,
    check_masks,
    check_number_of_actions,
    check_numbers,
    check_probabilities,
    check_propensities,
    check_scalar,
    check_shape,
    check_survives,
    check_vector,
    refuse,
)
from dr3.data.frames import Frames, chunks
from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions, monte_carlo_returns
from dr3.envs.observing import flatten
from dr3.envs.parts import Parts, Vectors, named_leaves
from dr3.errors import UserError

REQUIRED = ("observations", "actions", "rewards", "terminals")
OPTIONAL = (
    "next_observations",
    "timeouts",
    "next_actions",
    "next_action_known",
    "returns",
    "returns_discount",
    "episodes",
    "next_behavior",
    "masks",
    "next_masks",
    "propensities",
    "num_actions",
    "action_low",
    "action_high",
    "name",
    "world",
    "observation_parts",
)

NEVER_ENDS = (
    "No row is a terminal and the log does not say which are time-outs, so every episode reads as cut, and values look "
    "beyond its end; mark the terminals, or the time-outs if the process never ends by itself."
)


def assemble(columns: Mapping[str, Any], *, source: str, name: str, discount: float = 0.99) -> Transitions:
    """The table of a log. `source` is named in every refusal; `name` is used where the log has none.

    `REQUIRED` columns must be there; of the `OPTIONAL` ones, what is missing is made up for:
    - `timeouts`: none. Where both a terminal and a time-out are logged, the environment ended and the terminal counts.
    - `episodes`: a new one after every terminal and every time-out.
    - `next_observations`: the next row of the episode. After the last row of an episode that did not end in a terminal,
      s' was never logged: that row is dropped, and the row before it becomes the place where the episode was cut (its
      a' and its return are known all the same). A terminal row gets its own observation, which nothing may use.
    - `next_actions`: the next row of the episode; unknown at its end.
    - `next_action_known`: true but at terminals, if `next_actions` is there.
    - `returns`: Monte-Carlo, discounted by `discount`. Returns in the log keep their own `returns_discount`.
    - `masks`: every action was allowed. They must allow the action that was taken.
    - `next_masks`: the `masks` of the next row of the episode. After the last row of an episode that was cut they are
      unknown: that row is dropped, as where s' is.
    - `propensities`: unknown.
    - `num_actions`: the width of `next_behavior` or `masks`, or one more than the largest action; at most
      `MOST_ACTIONS`.
    - `action_low`, `action_high`: -1 and 1.
    Both columns of observations may also be `Frames` over one store, or mappings of parts, each with N rows: with a
    picture among them (height, width, channels) they become rows of bytes, else one vector.
    Actions with one number for each row are discrete, actions with shape (N, size) are continuous. Floats become
    float32 and discrete actions int32; integer and boolean observations stay as they are.

    Args:
        columns: Arrays by name, each with N rows.
        source: What to call the log in a refusal.
        name: The table's name, where the log has none.
        discount: γ of the Monte-Carlo returns, where the log holds none.
    """
    if not isinstance(discount, Real) or not 0 <= discount <= 1:
        raise UserError(f"The discount of the returns must be between 0 and 1, not {discount}.")
    check_names(columns, source)
    columns, parts = _with_parts(columns, source)
    columns = {key: _array(value, key, source) for key, value in columns.items()}
    observations = _observations(columns, "observations", source)
    rows = len(observations)
    rewards = check_vector(source, "rewards", columns["rewards"], rows).astype(np.float32)
    terminals = check_booleans(source, "terminals", columns["terminals"], rows)
    timeouts = np.zeros(rows, np.bool_)
    if "timeouts" in columns:
        timeouts = check_booleans(source, "timeouts", columns["timeouts"], rows) & ~terminals
    episodes = _episodes(columns, terminals, timeouts, source)
    last = np.r_[episodes[1:] != episodes[:-1], True]  # of its episode

    actions, space = _actions(columns, rows, source)
    next_actions, next_action_known = _next_actions(columns, actions, terminals, last, space, source)
    returns, returns_discount = _returns(columns, rewards, episodes, discount, source)

    keep = np.ones(rows, np.bool_)
    if "next_observations" in columns:
        next_observations = _observations(columns, "next_observations", source)
        check_shape(source, "next_observations", next_observations, observations.shape, "observations")
        if not isinstance(next_observations, Frames):
            next_observations = _in_type_of(observations, next_observations, source)
    else:
        next_observations = np.concatenate([observations[1:], observations[-1:]])
        next_observations[terminals] = observations[terminals]
        keep = ~last | terminals
        if not keep.any():
            refuse(source, "'next_observations' is missing, and no row is followed by another one of its episode.")
    masks, next_masks = _masks(columns, actions, terminals, space, source)
    if masks is not None and "next_masks" not in columns:
        keep &= ~last | terminals
        if not keep.any():
            refuse(source, "'next_masks' is missing, and no row is followed by another one of its episode.")
    timeouts[:-1] |= ~keep[1:] & ~last[:-1]

    table = Transitions(
        observations=observations,
        actions=actions,
        rewards=rewards,
        next_observations=next_observations,
        terminals=terminals,
        timeouts=timeouts,
        next_actions=next_actions,
        next_action_known=next_action_known,
        returns=returns,
        episodes=episodes,
        action_space=space,
        returns_discount=returns_discount,
        next_behavior=_next_behavior(columns, terminals, space, source),
        masks=masks,
        next_masks=next_masks,
        propensities=_propensities(columns, rows, space, source),
        name=plain_name(_text(columns, "name", source) or name),
        world=_text(columns, "world", source),
        parts=parts if parts is not None else _parts(columns, observations, source),
    )
    if not terminals.any() and "timeouts" not in columns:
        table = dataclasses.replace(table, remarks=(NEVER_ENDS,))
    if keep.all():
        return table
    unknown = "s' is not logged" if "next_observations" not in columns else "the allowed actions at s' are not logged"
    reason = f"last row of an episode that was cut: {unknown}"
    return dataclasses.replace(table.rows(np.flatnonzero(keep)), left_out=((reason, int((~keep).sum())),))


def _with_parts(columns: Mapping[str, Any], source: str) -> tuple[dict[str, Any], Parts | None]:
    """Observations that are mappings of parts as one column."""
    given = dict(columns)
    if not isinstance(given["observations"], Mapping):
        return given, None
    counts = {name: len(leaf) for name, leaf in named_leaves(given["observations"]).items() if leaf.ndim}
    if len(set(counts.values())) != 1:
        refuse(source, f"the parts of 'observations' have different numbers of rows: {counts}.")
    rows = next(iter(counts.values()))
    parts = Parts.of(given["observations"], rows=rows)
    for field in ("observations", "next_observations"):
        if field not in given:
            continue
        if parts is None:
            given[field] = flatten(given[field], rows=rows)
            continue
        try:
            given[field] = parts.pack(given[field], rows=rows)
        except UserError as error:
            refuse(source, f"'{field}': {error}")
    return given, parts


def _parts(columns: Mapping[str, Any], observations: Any, source: str) -> Parts | None:
    """What a file says of the parts of its observations, which are bytes there."""
    if (text := _text(columns, "observation_parts", source)) is None:
        return None
    try:
        parts = Parts.from_json(text)
    except UserError as error:
        refuse(source, f"'observation_parts': {error}")
    if observations.shape[1:] != (parts.nbytes,) or observations.dtype != np.uint8:
        refuse(
            source,
            f"'observations' holds {observations.dtype} of shape {observations.shape}, but its parts need "
            f"rows of {parts.nbytes} bytes.",
        )
    if not all(np.isfinite(rows).all() for rows in chunks(Vectors(observations, parts))):
        refuse(source, "'observations' holds a number that is not finite in one of its vectors.")
    return parts


def plain_name(name: str) -> str:
    """A table's name as a part of a folder's name, which it becomes: one that leads elsewhere (../x) must not."""
    return re.sub(r"[/\\\x00-\x1f]+", "-", name)


def _array(value: Any, field: str, source: str) -> Any:
    """What is not an array yet as one: lists, text, and the arrays of other libraries."""
    if isinstance(value, Frames | np.ndarray | np.generic):
        return value
    try:
        return np.asarray(value)
    except ValueError:
        refuse(source, f"'{field}' has rows of different shapes; each step needs a row of the same shape.")


def check_names(names: Collection[str], source: str) -> None:
    """A field that is only misspelt must not be passed over: without its time-outs a log reads as one long episode."""
    known = REQUIRED + OPTIONAL
    for field in names:
        absent = [one for one in known if one not in names]
        if field not in known and (meant := difflib.get_close_matches(field, absent, n=1, cutoff=0.85)):
            refuse(source, f"'{field}' is not a known field; rename it to '{meant[0]}' if it is that, or leave it out.")
    for field in REQUIRED:
        if field not in names:
            refuse(source, f"'{field}' is missing; the required fields are {', '.join(REQUIRED)}.")


def _observations(columns: Mapping[str, Any], field: str, source: str) -> Any:
    values = columns[field]
    if isinstance(values, Frames):  # its numbers need no look: they are whole
        rewards = columns["rewards"]
        if rewards.ndim > 0 and len(values) != len(rewards):  # a single reward is refused as such, with its own field
            refuse(source, f"'{field}' has {len(values)} rows, but 'rewards' has {len(rewards)}.")
        return values
    if values.ndim < 2 or 0 in values.shape[1:]:
        refuse(source, f"'{field}' has shape {values.shape}, but each step needs a row of numbers: (rows, size).")
    if len(values) == 0:
        refuse(source, f"'{field}' has 0 rows, so there is nothing to learn from.")
    numbers = check_numbers(source, field, values, len(columns["observations"]))
    check_fits_in_32_bits(source, field, numbers)
    return numbers


def _in_type_of(observations: Values, following: Values, source: str) -> Values:
    cast = following.astype(observations.dtype)
    if cast.dtype.kind != "f" and cast.dtype != following.dtype:  # among floats it is only rounded
        check_survives(source, "next_observations", following, cast, "observations")
    return cast


def _episodes(
    columns: Mapping[str, Values], terminals: NDArray[np.bool_], timeouts: NDArray[np.bool_], source: str
) -> NDArray[np.int32]:
    if "episodes" not in columns:
        ends = terminals | timeouts
        return np.r_[0, np.cumsum(ends[:-1])].astype(np.int32)
    episodes = check_vector(source, "episodes", columns["episodes"], len(terminals))
    if episodes.dtype.kind not in "iu":
        refuse(source, f"'episodes' holds values of type {episodes.dtype}, but an episode is named by an integer.")
    if episodes.max() > np.iinfo(np.int32).max or episodes.min() < np.iinfo(np.int32).min:
        refuse(source, "'episodes' holds numbers beyond 32 bits; number the episodes from 0.")
    check_contiguous(source, episodes)
    check_ends(source, "terminals", terminals, episodes)
    check_ends(source, "timeouts", timeouts, episodes)
    return episodes.astype(np.int32)


def _actions(
    columns: Mapping[str, Values], rows: int, source: str
) -> tuple[Values, DiscreteActions | ContinuousActions]:
    actions = check_numbers(source, "actions", columns["actions"], rows)
    if actions.ndim == 1:
        space = _discrete_space(columns, actions, source)
        check_actions(source, "actions", actions, space)
        return actions.astype(np.int32), space
    if actions.ndim != 2 or actions.shape[1] == 0:
        refuse(source, f"'actions' has shape {actions.shape}, but it needs (rows,) or (rows, size).")
    if actions.dtype.kind != "f" or "num_actions" in columns:
        refuse(source, f"'actions' has shape {actions.shape}, but discrete actions need one integer for each row.")
    low = check_scalar(source, "action_low", columns.get("action_low", np.array(-1.0)))
    high = check_scalar(source, "action_high", columns.get("action_high", np.array(1.0)))
    if not low < high:
        refuse(source, f"'action_low' is {low}, but it must be below 'action_high', which is {high}.")
    space = ContinuousActions(actions.shape[1], float(low), float(high))
    check_actions(source, "actions", actions, space)
    return actions, space


def _discrete_space(columns: Mapping[str, Values], actions: Values, source: str) -> DiscreteActions:
    for field in ("action_low", "action_high"):
        if field in columns:
            refuse(source, f"'{field}' is for continuous actions, but 'actions' has one number for each row.")
    if "num_actions" in columns:
        count = check_scalar(source, "num_actions", columns["num_actions"])
        if count != int(count) or count < 1:
            refuse(source, f"'num_actions' is {count}, but it must be a whole number above 0.")
        check_number_of_actions(source, "num_actions", int(count))
        return DiscreteActions(int(count))
    if "next_behavior" in columns and columns["next_behavior"].ndim == 2:
        check_number_of_actions(source, "next_behavior", columns["next_behavior"].shape[1])
        return DiscreteActions(columns["next_behavior"].shape[1])
    if "masks" in columns and columns["masks"].ndim == 2:
        check_number_of_actions(source, "masks", columns["masks"].shape[1])
        return DiscreteActions(max(1, columns["masks"].shape[1]))
    largest = int(actions.max())
    if largest >= MOST_ACTIONS:
        row = int(np.argmax(actions))
        refuse(source, f"row {row} of 'actions' is {largest}, but the last action can be {MOST_ACTIONS - 1} at most.")
    return DiscreteActions(max(1, largest + 1))


def _next_actions(
    columns: Mapping[str, Values],
    actions: Values,
    terminals: NDArray[np.bool_],
    last: NDArray[np.bool_],
    space: DiscreteActions | ContinuousActions,
    source: str,
) -> tuple[Values, NDArray[np.bool_]]:
    """The logged a' and where it is known; zero elsewhere, so that whatever stood there cannot leak."""
    if "next_actions" in columns:
        given = check_numbers(source, "next_actions", columns["next_actions"], len(actions))
        check_shape(source, "next_actions", given, actions.shape, "actions")
        known = ~terminals
        if "next_action_known" in columns:
            known = check_booleans(source, "next_action_known", columns["next_action_known"], len(actions))
        check_actions(source, "next_actions", given, space, only=known)
    else:
        if "next_action_known" in columns:
            refuse(source, "'next_action_known' says where 'next_actions' holds, but 'next_actions' is missing.")
        given, known = np.concatenate([actions[1:], actions[-1:]]), ~last
    mask = known if actions.ndim == 1 else known[:, None]
    return np.where(mask, given, 0).astype(actions.dtype), known


def _returns(
    columns: Mapping[str, Values],
    rewards: NDArray[np.float32],
    episodes: NDArray[np.int32],
    discount: float,
    source: str,
) -> tuple[NDArray[np.float32], float]:
    if ("returns" in columns) != ("returns_discount" in columns):
        present, missing = ("returns", "returns_discount")[:: 1 if "returns" in columns else -1]
        refuse(source, f"'{present}' is there but '{missing}' is not; give both or neither.")
    if "returns" not in columns:
        return monte_carlo_returns(rewards, episodes, discount), discount
    own = check_scalar(source, "returns_discount", columns["returns_discount"])
    if not 0 <= own <= 1:
        refuse(source, f"'returns_discount' is {own}, but a discount is between 0 and 1.")
    return check_vector(source, "returns", columns["returns"], len(rewards)).astype(np.float32), float(own)


def _next_behavior(
    columns: Mapping[str, Values],
    terminals: NDArray[np.bool_],
    space: DiscreteActions | ContinuousActions,
    source: str,
) -> NDArray[np.float32] | None:
    if "next_behavior" not in columns:
        return None
    if not isinstance(space, DiscreteActions):
        refuse(source, "'next_behavior' holds a probability for each action, but the actions are continuous.")
    values = check_numbers(source, "next_behavior", columns["next_behavior"], len(terminals))
    check_shape(source, "next_behavior", values, (len(terminals), space.count), "num_actions")
    check_probabilities(source, "next_behavior", values, only=~terminals)
    return values.astype(np.float32)


def _masks(
    columns: Mapping[str, Values],
    actions: Values,
    terminals: NDArray[np.bool_],
    space: DiscreteActions | ContinuousActions,
    source: str,
) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
    """Which actions are allowed at s and at s'. Behind a terminal all are: there nothing is chosen."""
    if "masks" not in columns:
        if "next_masks" in columns:
            refuse(source, "'next_masks' is there but 'masks' is not; give both, or 'masks' alone.")
        return None, None
    if not isinstance(space, DiscreteActions):
        refuse(source, "'masks' says which actions are allowed, but the actions are continuous.")
    masks = check_masks(source, "masks", columns["masks"], (len(actions), space.count))
    check_allowed(source, "masks", masks, actions)
    if "next_masks" not in columns:
        following = np.concatenate([masks[1:], masks[-1:]])
        following[terminals] = True
        return masks, following
    following = check_masks(source, "next_masks", columns["next_masks"], masks.shape, only=~terminals)
    return masks, following | terminals[:, None]


def _propensities(
    columns: Mapping[str, Values], rows: int, space: DiscreteActions | ContinuousActions, source: str
) -> NDArray[np.float32] | None:
    if "propensities" not in columns:
        return None
    values = check_vector(source, "propensities", columns["propensities"], rows).astype(np.float32)
    most = 1.0 if isinstance(space, DiscreteActions) else np.inf  # of continuous actions it is a density
    check_propensities(source, "propensities", values, most)
    return values


def _text(columns: Mapping[str, Values], field: str, source: str) -> str | None:
    if field not in columns:
        return None
    if columns[field].dtype.kind != "U" or columns[field].size != 1:
        refuse(source, f"'{field}' must be a single string.")
    return str(columns[field].reshape(-1)[0])
