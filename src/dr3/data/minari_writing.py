"""A table written as a Minari data set."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dr3.data.checks import Values, refuse
from dr3.data.d4rl import hdf5
from dr3.data.faults import episode_starts, gaps
from dr3.data.minari import FORMATS, MAIN, METADATA, OURS, Episode, arrow
from dr3.data.transitions import DiscreteActions, Transitions
from dr3.envs.observing import limits
from dr3.errors import UserError

LAYOUT = "0.5.4"  # the version of Minari whose files these are


def write_minari(path: str | os.PathLike[str], transitions: Transitions, *, form: str = "hdf5") -> None:
    """Write a folder that Minari reads; `form` is "hdf5" or "arrow". It appears under its name only when it is whole.

    Minari keeps episodes, so the rows of each must follow each other (a random subset is refused), and it keeps what
    was seen, done and paid: returns, and an a' that was logged behind the end of an episode, are not written.

    Args:
        path: The folder to write.
        transitions: The table to write.
        form: "hdf5" or "arrow".
    """
    if form not in FORMATS:
        raise UserError(f"A Minari data set is written as {' or '.join(FORMATS)}, not {form!r}.")
    folder = Path(path)
    if folder.exists():
        refuse(str(folder), "it is there already; remove it or choose another name.")
    if not folder.parent.is_dir():
        refuse(str(folder), "the folder it should be written to does not exist.")
    if transitions.parts is not None:
        refuse(str(folder), "observations with pictures among their parts are written as .npz or .hdf5.")
    episodes = _episodes(transitions, str(folder))
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}.unfinished")
    data = unfinished / "data"
    try:
        data.mkdir(parents=True)
        (_write_hdf5 if form == "hdf5" else _write_arrow)(data, episodes)
        size = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
        about = _metadata(transitions, episodes, form) | {"dataset_size": round(size / 1e6, 1)}
        (data / METADATA).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _episodes(table: Transitions, source: str) -> list[Episode]:
    if len(broken := gaps(table)):
        refuse(
            source,
            f"rows {broken[0]} and {broken[0] + 1} are of one episode but do not follow each other, and Minari keeps "
            "whole episodes; write .npz or .hdf5 instead.",
        )
    found = []
    for first, end in itertools.pairwise([*episode_starts(table), len(table)]):
        rows = slice(first, end)
        seen = np.concatenate([table.observations[rows], table.next_observations[end - 1 : end]])
        flags = table.rewards[rows], table.terminals[rows], table.timeouts[rows]
        found.append(Episode(f"episode_{len(found)}", seen, table.actions[rows], *flags))
    return found


def _write_hdf5(folder: Path, episodes: list[Episode]) -> None:
    with hdf5(str(folder)).File(folder / MAIN, "w", track_order=True) as file:
        for number, episode in enumerate(episodes):
            group = file.create_group(episode.source)
            group.attrs["id"], group.attrs["total_steps"] = number, len(episode.rewards)
            for field, values in _fields(episode).items():
                group.create_dataset(field, data=values, chunks=True, maxshape=(None, *values.shape[1:]))


def _write_arrow(folder: Path, episodes: list[Episode]) -> None:
    pyarrow = arrow(str(folder))

    def column(values: Values, rows: int) -> Any:
        padded = np.concatenate([values, np.zeros((rows - len(values), *values.shape[1:]), values.dtype)])
        if padded.ndim == 1:
            return pyarrow.array(padded)
        flat = padded.reshape(rows, -1)
        kind = pyarrow.list_(pyarrow.from_numpy_dtype(flat.dtype), flat.shape[1])
        return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(flat.ravel()), type=kind)

    for number, episode in enumerate(episodes):
        part = folder / str(number)
        part.mkdir()
        rows = len(episode.rewards) + 1
        batch = pyarrow.RecordBatch.from_pydict({name: column(one, rows) for name, one in _fields(episode).items()})
        with pyarrow.ipc.new_file(part / "part-0.arrow", batch.schema) as file:
            file.write_batch(batch)
        (part / METADATA).write_text(json.dumps({"id": number, "total_steps": rows - 1}))


def _fields(episode: Episode) -> dict[str, Values]:
    return {field: values for field, values in episode._asdict().items() if field != "source"}


def _metadata(table: Transitions, episodes: list[Episode], form: str) -> dict[str, Any]:
    seen = episodes[0].observations
    slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", table.name) or "table"
    about: dict[str, Any] = {
        "total_episodes": len(episodes),
        "total_steps": len(table),
        "data_format": form,
        "jpeg_encoding": False,
        "observation_space": json.dumps(_box(seen.dtype, seen.shape[1:], *limits(seen.dtype))),
        "action_space": json.dumps(_action_space(table)),
        "dataset_id": f"dr3/{slug}-v0",
        "minari_version": LAYOUT,
        OURS: {"name": table.name, **({} if table.world is None else {"world": table.world})},
    }
    spec = _environment(table.world)
    return about | ({} if spec is None else {"env_spec": spec})


def _action_space(table: Transitions) -> dict[str, Any]:
    space = table.action_space
    if isinstance(space, DiscreteActions):
        return {"type": "Discrete", "dtype": "int64", "start": 0, "n": space.count}
    return _box(np.dtype(np.float32), (space.size,), space.low, space.high)


def _box(dtype: np.dtype, shape: tuple[int, ...], low: float, high: float) -> dict[str, Any]:
    ends = (np.full(shape, end, dtype).tolist() for end in (low, high))
    return {"type": "Box", "dtype": str(dtype), "shape": list(shape), **dict(zip(("low", "high"), ends, strict=True))}


def _environment(world: str | None) -> str | None:
    """Minari's way to name an environment, where Gymnasium knows the world under its name."""
    if world is None or find_spec("gymnasium") is None:
        return None
    import gymnasium

    try:
        return gymnasium.spec(world).to_json()
    except gymnasium.error.Error:
        return None
