"""Minari's data sets as a table, and a table as one of them."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from dr3.data.assemble import assemble
from dr3.data.checks import Values, refuse
from dr3.data.minari_files import METADATA, Episode, episodes_of, is_minari, read_metadata
from dr3.data.transitions import Transitions
from dr3.envs.observing import flatten, leaves

OURS = "dr3"  # what we add to the metadata: the world's name and the table's, which Minari has no place for


def read_minari(path: str | os.PathLike[str], *, discount: float = 0.99) -> Transitions:
    """Read a folder of Minari (HDF5, Arrow or Parquet inside), without its environment and without Minari.

    - A termination is a terminal; a truncation, and the end of an episode that was only left off, is a time-out. Every
      row has its own s', for an episode's last observation is stored too.
    - Observations with parts become one vector by the rule of `dr3.envs.flatten`: keys in alphabetical order, so
      achieved_goal, desired_goal, observation. Actions with parts are refused.
    - Pictures stored unrolled get back the shape of the observation space.
    - The bounds of the actions are those of the action space; where each dimension has its own, the widest.
    - The world is the environment that the folder names, with its arguments if it has any.
    """
    folder = Path(path)
    if not is_minari(folder):
        refuse(str(folder), "there is no Minari data set in it (data/metadata.json).")
    metadata = read_metadata(folder)
    shape = _shape(metadata.get("observation_space"), str(folder / "data" / METADATA))
    episodes = [_checked(episode, shape) for episode in episodes_of(folder, metadata) if len(episode.rewards)]
    if not episodes:
        refuse(str(folder), "it has no episode with a step, so there is nothing to learn from.")
    _check_alike(episodes)
    columns: dict[str, Any] = {
        "observations": np.concatenate([episode.observations[:-1] for episode in episodes]),
        "next_observations": np.concatenate([episode.observations[1:] for episode in episodes]),
        "actions": np.concatenate([episode.actions for episode in episodes]),
        "rewards": np.concatenate([episode.rewards for episode in episodes]),
        "terminals": np.concatenate([episode.terminations for episode in episodes]),
        "timeouts": np.concatenate([_timeouts(episode) for episode in episodes]),
    }
    own = metadata.get(OURS)
    own = own if isinstance(own, dict) else {}
    try:
        columns |= _action_fields(metadata.get("action_space"), columns["actions"])
        if world := own.get("world") or _world(metadata.get("env_spec")):
            columns["world"] = np.array(world)
    except (KeyError, TypeError):
        refuse(str(folder / "data" / METADATA), "a part of its 'action_space' or 'env_spec' is missing.")
    name = str(own.get("name") or metadata.get("dataset_id", folder.name))
    return assemble(columns, source=str(folder), name=name, discount=discount)


def _shape(space: Any, source: str) -> tuple[int, ...] | None:
    """Of one observation, where it has no parts: Arrow and Parquet store pictures unrolled."""
    if not isinstance(space, dict) or space.get("type") != "Box":
        return None
    shape = space.get("shape")
    if not isinstance(shape, list) or not all(isinstance(size, int) and size > 0 for size in shape):
        refuse(source, "the 'shape' of its 'observation_space' is missing, or is no list of whole numbers above 0.")
    return tuple(shape)


def _checked(episode: Episode, shape: tuple[int, ...] | None) -> Episode:
    """With plain arrays, observations in their shape, and the same number of steps in every column."""
    if len(leaves(episode.actions)) != 1 or isinstance(episode.actions, dict | tuple):
        refuse(episode.source, "its actions have parts; only a vector or a number can be read.")
    steps = len(episode.rewards)
    for part in leaves(episode.observations):
        if part.dtype.kind not in "biuf":
            refuse(
                episode.source,
                f"'observations' holds values of type {part.dtype}, but only real numbers can be read; write images "
                f"without JPEG.",
            )
        if len(part) != steps + 1:
            refuse(episode.source, f"'observations' has {len(part)} rows, but {steps} steps need {steps + 1}.")
    for field in ("actions", "terminations", "truncations"):
        if len(getattr(episode, field)) != steps:
            refuse(episode.source, f"'{field}' has {len(getattr(episode, field))} rows, but 'rewards' has {steps}.")
    seen = flatten(episode.observations, rows=steps + 1)
    if shape is not None:
        if seen[0].size != math.prod(shape):
            refuse(
                episode.source,
                f"a row of 'observations' has shape {seen.shape[1:]}, but the metadata's 'observation_space' {shape}.",
            )
        seen = seen.reshape(steps + 1, *shape)
    return episode._replace(observations=seen[:, None] if seen.ndim == 1 else seen)


def _check_alike(episodes: list[Episode]) -> None:
    first = episodes[0]
    for episode in episodes[1:]:
        for field in ("observations", "actions"):
            here, there = getattr(episode, field).shape[1:], getattr(first, field).shape[1:]
            if here != there:
                refuse(episode.source, f"a row of '{field}' has shape {here}, but in the first episode {there}.")


def _timeouts(episode: Episode) -> Values:
    flags = np.asarray(episode.truncations, np.bool_).copy()
    flags[-1] |= not episode.terminations[-1]
    return flags


def _action_fields(space: dict[str, Any] | None, actions: Values) -> dict[str, Any]:
    """How many actions there are (counted from 0), or between which numbers."""
    if space is None:
        return {}
    if space["type"] == "Discrete":
        return {"num_actions": np.array(space["n"]), "actions": actions - space.get("start", 0)}
    if space["type"] != "Box":
        return {}
    low, high = np.min(space["low"]), np.max(space["high"])
    # A space without bounds says nothing: what was done does.
    return {
        "action_low": np.array(low if np.isfinite(low) else actions.min()),
        "action_high": np.array(high if np.isfinite(high) else actions.max()),
    }


def _world(spec: dict[str, Any] | None) -> str | None:
    if not spec:
        return None
    return spec["id"] + (json.dumps(spec["kwargs"]) if spec.get("kwargs") else "")
