"""A table in another format."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dr3.data.checks import refuse
from dr3.data.d4rl import write_d4rl
from dr3.data.dqn_replay_files import STACK
from dr3.data.dqn_replay_writer import write_dqn_replay
from dr3.data.frames import Frames
from dr3.data.minari_writing import write_minari
from dr3.data.npz import write_npz
from dr3.data.transitions import Transitions
from dr3.errors import UserError

ENDINGS = {".npz": "npz", ".hdf5": "d4rl", ".h5": "d4rl"}


def write_replay_folder(path: str | os.PathLike[str], table: Transitions) -> None:
    """Write stacks of images (…, height, width, 4) as DQN-replay files; what that format cannot keep is refused.

    It knows no time-outs (but where the log stops), no gaps, and nothing of the frames before an episode's first.
    """
    folder = Path(path)
    source = str(folder)
    if folder.exists():
        refuse(source, "it is there already; remove it or choose another name.")
    seen, following = table.observations, table.next_observations
    if seen.ndim != 4 or seen.shape[-1] != STACK or seen.dtype != np.uint8 or table.actions.ndim != 1:
        refuse(source, f"a DQN replay holds stacks of {STACK} uint8 images and discrete actions, which these are not.")
    if table.timeouts[:-1].any():
        row = int(np.argmax(table.timeouts))
        refuse(source, f"row {row} is a time-out, which a DQN replay cannot keep; write .npz or .hdf5 instead.")
    starts = np.flatnonzero(np.append(True, table.episodes[1:] != table.episodes[:-1]))
    if any(np.asarray(seen[row])[..., :-1].any() for row in starts):
        refuse(source, "an episode begins with frames of steps that are not in the table, so they cannot be kept.")
    images = seen.stored[seen.newest] if isinstance(seen, Frames) else np.asarray(seen)[..., -1]
    columns: dict[str, Any] = {"frames": images, "actions": table.actions, "rewards": table.rewards}
    columns["terminals"] = table.terminals
    if not table.terminals[-1]:  # one more row, for the last s'
        more = {"frames": np.asarray(following[-1:])[..., -1]}
        columns = {
            name: np.append(one, more.get(name, np.zeros(1, one.dtype)), axis=0) for name, one in columns.items()
        }
    write_dqn_replay(folder, **columns)


WRITERS: dict[str, Callable[[str | os.PathLike[str], Transitions], None]] = {
    "npz": write_npz,
    "d4rl": write_d4rl,
    "minari": partial(write_minari, form="hdf5"),
    "minari-arrow": partial(write_minari, form="arrow"),
    "dqn-replay": write_replay_folder,
}


def write(path: str | os.PathLike[str], table: Transitions, *, form: str | None = None) -> str:
    """Write a table in one of `WRITERS`' formats, by default the one that the ending says; which one it was."""
    chosen = form or ENDINGS.get(Path(path).suffix.lower())
    if chosen is None:
        raise UserError(
            f"{path}: its name does not say a format ({', '.join(ENDINGS)}); choose one with --format "
            f"{'|'.join(WRITERS)}."
        )
    if chosen not in WRITERS:
        raise UserError(f"There is no format {chosen!r} to write; there are {', '.join(WRITERS)}.")
    WRITERS[chosen](path, table)
    return chosen
