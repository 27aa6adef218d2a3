"""A table in another format."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import refuse
from dr3.data.d4rl import write_d4rl
from dr3.data.dqn_replay_files import STACK, write_dqn_replay
from dr3.data.faults import episode_starts, gaps
from dr3.data.frames import Frames, chunks
from dr3.data.minari_writing import write_minari
from dr3.data.npz import write_npz
from dr3.data.transitions import Transitions
from dr3.errors import UserError

ENDINGS = {".npz": "npz", ".hdf5": "d4rl", ".h5": "d4rl"}


def write_replay_folder(path: str | os.PathLike[str], table: Transitions) -> None:
    """Write stacks of images (…, height, width, 4) as DQN-replay files; what that format cannot keep is refused.

    It knows no time-outs (but where the log stops), no gaps, and nothing of the frames before an episode's first. (An
    a' that is not known where the log stops is written as action 0: there the format has no place for a mask.)
    """
    folder = Path(path)
    source = str(folder)
    if folder.exists():
        refuse(source, "it is there already; remove it or choose another name.")
    seen, following = table.observations, table.next_observations
    if seen.ndim != 4 or seen.shape[-1] != STACK or seen.dtype != np.uint8 or table.actions.ndim != 1:
        refuse(source, f"a DQN replay holds stacks of {STACK} uint8 images and discrete actions, which these are not.")
    starts = episode_starts(table)
    cut = table.timeouts.copy()
    cut[starts[1:] - 1] |= ~table.terminals[starts[1:] - 1]
    if cut[:-1].any():
        row = int(np.argmax(cut))
        what = "is a time-out" if table.timeouts[row] else "ends its episode without a terminal"
        refuse(source, f"row {row} {what}, which a DQN replay cannot keep; write .npz or .hdf5 instead.")
    if len(broken := gaps(table)):
        refuse(
            source,
            f"rows {broken[0]} and {broken[0] + 1} are of one episode but do not follow each other, which a DQN replay "
            "cannot keep; write .npz or .hdf5 instead.",
        )
    if len(jumping := _jumps(table)):
        refuse(source, f"the s' of row {jumping[0]} is not its s moved on by one frame, so it cannot be kept.")
    if any(np.asarray(seen[row])[..., :-1].any() for row in starts):
        refuse(source, "an episode begins with frames of steps that are not in the table, so they cannot be kept.")
    images = seen.stored[seen.newest] if isinstance(seen, Frames) and seen.stack else np.asarray(seen)[..., -1]
    columns: dict[str, Any] = {"frames": images, "actions": table.actions, "rewards": table.rewards}
    columns["terminals"] = table.terminals
    if not table.terminals[-1]:  # one more row, for the last s'
        more = {"frames": following[-1:][..., -1], "actions": table.next_actions[-1:]}
        columns = {
            name: np.append(one, more.get(name, np.zeros(1, one.dtype)), axis=0) for name, one in columns.items()
        }
    write_dqn_replay(folder, **columns)


def _jumps(table: Transitions) -> NDArray[np.intp]:
    """Rows that go on, but whose s' is not s without its oldest frame and with a new one."""
    slides = [
        (now[..., 1:] == then[..., :-1]).all(axis=(1, 2, 3))
        for now, then in zip(chunks(table.observations), chunks(table.next_observations), strict=True)
    ]
    return np.flatnonzero(~np.concatenate(slides) & ~table.terminals)


WRITERS: dict[str, Callable[[str | os.PathLike[str], Transitions], None]] = {
    "npz": write_npz,
    "d4rl": write_d4rl,
    "minari": partial(write_minari, form="hdf5"),
    "minari-arrow": partial(write_minari, form="arrow"),
    "dqn-replay": write_replay_folder,
}


def write(path: str | os.PathLike[str], table: Transitions, *, form: str | None = None) -> str:
    """Write a table in one of `WRITERS`' formats, by default the one that the ending says; which one it was.

    Args:
        path: The file or folder to write.
        table: The table.
        form: The format; None goes by the ending of the name.
    """
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
