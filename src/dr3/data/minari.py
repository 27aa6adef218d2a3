"""Minari's data sets as tables.

A folder holds `data/metadata.json`, and either `data/main_data.hdf5` with a group for each episode, or
`data/0/…`, `data/1/…` with a table for each. Neither Minari nor the environment is needed to read them.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dr3.data.assemble import assemble
from dr3.data.checks import Values, check_booleans, refuse
from dr3.data.d4rl import UNREADABLE, dataset, hdf5, hdf5_item, unpacked_bytes
from dr3.data.gate import DAMAGED, announce, gated, opened
from dr3.data.transitions import Transitions
from dr3.envs.observing import flatten, leaves
from dr3.errors import UserError

OURS = "dr3"  # what we add to the metadata: the world's name and the table's, which Minari has no place for
MAIN = "main_data.hdf5"
METADATA = "metadata.json"
FORMATS = ("hdf5", "arrow")
COLUMNS = ("rewards", "terminations", "truncations")


class Episode(NamedTuple):
    """T steps and the T + 1 observations around them; observations and actions with parts are mappings or tuples."""

    source: str
    observations: Any
    actions: Any
    rewards: NDArray[Any]
    terminations: NDArray[Any]
    truncations: NDArray[Any]


@gated
def read_minari(path: str | os.PathLike[str], *, discount: float = 0.99) -> Transitions:
    """Read a folder of Minari (HDF5, Arrow or Parquet inside), without its environment and without Minari.

    - A termination is a terminal; a truncation, and the end of an episode that was only left off, is a time-out. Every
      row has its own s', for an episode's last observation is stored too.
    - Observations with parts become one vector by the rule of `dr3.envs.flatten`: keys in alphabetical order, so
      achieved_goal, desired_goal, observation. Actions with parts are refused.
    - Pictures stored unrolled get back the shape of the observation space.
    - The bounds of the actions are those of the action space; where each dimension has its own, the widest.
    - The world is the environment that the folder names, with its arguments if it has any.

    Args:
        path: The folder.
        discount: γ of the Monte-Carlo returns, where the log holds none.
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
    flags = check_booleans(episode.source, "truncations", np.asarray(episode.truncations), len(episode.rewards)).copy()
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


def is_minari(folder: Path) -> bool:
    return (folder / "data" / METADATA).is_file()


def read_metadata(folder: Path) -> dict[str, Any]:
    """What the folder says of itself; the spaces and the environment are JSON inside of JSON, and are unpacked too."""
    path = folder / "data" / METADATA
    try:
        with opened(path) as stream:
            found = json.loads(stream.read())
        nested = ("observation_space", "action_space", "env_spec")
        return found | {key: json.loads(found[key]) for key in nested if isinstance(found.get(key), str)}
    except (ValueError, TypeError, AttributeError, RecursionError):  # the third: JSON, but no object
        refuse(str(path), "this is no whole JSON object; copy or write the folder again.")


def episodes_of(folder: Path, metadata: dict[str, Any]) -> Iterator[Episode]:
    """Every episode, in the order of their numbers."""
    form = metadata.get("data_format", "hdf5")
    if form not in (*FORMATS, "parquet"):
        refuse(str(folder / "data" / METADATA), f"its 'data_format' is {form!r}; hdf5, arrow and parquet can be read.")
    return _from_hdf5(folder / "data" / MAIN) if form == "hdf5" else _from_arrow(folder / "data", form)


def arrow(source: str) -> Any:
    """The module pyarrow, with the parts of it that are used."""
    try:
        for part in ("pyarrow.dataset", "pyarrow.ipc"):
            import_module(part)
        return import_module("pyarrow")
    except ImportError:
        raise UserError(f"{source}: reading and writing Arrow needs pyarrow: pip install 'dr3[minari]'.") from None


def _from_hdf5(path: Path) -> Iterator[Episode]:
    source = str(path)
    h5py = hdf5(source)
    opened(path).close()

    def unpack(item: Any, place: str) -> Any:
        if isinstance(item, h5py.Group):
            return _as_tuple({name: unpack(hdf5_item(item, name, place), place) for name in item}, "_index_")
        return dataset(item, item.name, place)

    def size(name: str, item: Any) -> None:
        counts = isinstance(item, h5py.Dataset) and "/infos/" not in f"/{name}"
        sizes.append(unpacked_bytes(item) if counts else 0)

    sizes: list[int] = []
    try:
        with h5py.File(path, "r") as file:
            file.visititems(size)
            announce(source, sum(sizes), path.stat().st_size)
            for name in sorted(file, key=_number):
                group = hdf5_item(file, name, source)
                place = f"{source}, {name}"
                for field in ("observations", "actions", *COLUMNS):
                    if field not in group:
                        refuse(place, f"'{field}' is missing.")
                items = (hdf5_item(group, field, place) for field in ("observations", "actions", *COLUMNS))
                yield Episode(place, *(unpack(item, place) for item in items))
    except UNREADABLE:
        refuse(source, DAMAGED)


def _from_arrow(folder: Path, form: str) -> Iterator[Episode]:
    pyarrow = arrow(str(folder))

    def unpack(column: Any) -> Any:
        kind = column.type
        if pyarrow.types.is_struct(kind):
            parts = {kind.field(number).name: column.field(number) for number in range(kind.num_fields)}
            return _as_tuple({name: unpack(part) for name, part in parts.items()}, "")
        if pyarrow.types.is_fixed_size_list(kind):
            return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, kind.list_size)
        return column.to_numpy(zero_copy_only=False)

    def width(kind: Any) -> int:
        """Bytes of one row; of what has no fixed width, those of a pointer."""
        if pyarrow.types.is_struct(kind):
            return sum(width(kind.field(number).type) for number in range(kind.num_fields))
        if pyarrow.types.is_fixed_size_list(kind):
            return kind.list_size * width(kind.value_type)
        return max(1, kind.bit_width // 8) if pyarrow.types.is_primitive(kind) else 8

    unpacked = stored = 0
    for part in sorted((part for part in folder.iterdir() if part.is_dir()), key=lambda part: _number(part.name)):
        for file in part.iterdir():
            opened(file).close()
            stored += file.stat().st_size
        try:
            lazy = pyarrow.dataset.dataset(part, format=form, ignore_prefixes=["_", ".", METADATA])
            unpacked += lazy.count_rows() * sum(width(kind) for kind in lazy.schema.types)
            announce(str(folder), unpacked, stored)
            found = lazy.to_table()
            found.validate(full=True)
        except (pyarrow.ArrowException, OSError):
            refuse(str(part), DAMAGED)
        columns = {name: found[name].combine_chunks() for name in found.column_names}
        for field in ("observations", "actions", *COLUMNS):
            if field not in columns:
                refuse(str(part), f"'{field}' is missing.")
        # The last row holds the last observation alone.
        steps = slice(0, len(found) - 1)
        flags = (np.asarray(columns[field])[steps] for field in COLUMNS)
        yield Episode(str(part), unpack(columns["observations"]), unpack(columns["actions"][steps]), *flags)


def _as_tuple(parts: dict[str, Any], prefix: str) -> Any:
    """A tuple is stored as a mapping whose keys count."""
    keys = [f"{prefix}{number}" for number in range(len(parts))]
    return tuple(parts[key] for key in keys) if set(keys) == set(parts) else parts


def _number(name: str) -> int:
    digits = name.rpartition("_")[2]
    return int(digits) if re.fullmatch("[0-9]{1,18}", digits) else -1
