"""The DQN-replay format as a table: what an online Atari agent saw, frame by frame.

Row t of the files is (frame o_t, a_t, r_t, terminal_t), and the next frame is row t + 1. Before an episode come three
rows of zeros, so that a stack of four frames never needs an exception. Frames are unpacked once into a cache and mapped
into memory from then on; each is there once, and stacks are put together when rows are drawn.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
import time
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import MOST_ACTIONS, refuse
from dr3.data.dqn_replay_files import (
    DAMAGE,
    DAMAGED,
    ROWS_AT_A_TIME,
    STACK,
    Checkpoint,
    check_end,
    check_in_time,
    checkpoint_numbers,
    file_of,
    frame_header,
    read_checkpoint,
    unpacking,
)
from dr3.data.frames import Frames
from dr3.data.gate import announce, array_header, cache_beside, check_claim, check_may_unpack, gated, opened
from dr3.data.subsets import ReplayPart
from dr3.data.transitions import DiscreteActions, Transitions, monte_carlo_returns
from dr3.envs import ATARI
from dr3.errors import UserError
from dr3.files import written_whole
from dr3.progress import Reporter, reporter

LOGS = "replay_logs"  # the last folder of every public replay
MANY = 50_000  # frames: some seconds of unpacking, which are not passed in silence


def is_dqn_replay(folder: Path) -> bool:
    return folder.is_dir() and any(folder.glob("$store$_action_ckpt.*.gz"))


@gated
def read_dqn_replay(
    folder: str | os.PathLike[str],
    *,
    part: str | None = None,
    num_actions: int | None = None,
    discount: float = 0.99,
    cache: str | os.PathLike[str] | None = None,
) -> Transitions:
    """The table of a folder of checkpoints, or of a `part` of it: "1%", "5%" or "first-10%", as the paper's data.

    "1%" is the first hundredth of the rows of each of fifty files; "first-10%" is five of them, whole, and "first-1%"
    half of the first. Of fewer files it is those that are there. Only what is asked for is unpacked, into `cache` (by
    default a hidden folder beside the files).

    The format says neither which game it is nor how many actions that has. A folder inside one that is named after a
    game of the paper (Pong/1/replay_logs, as the public replays) is taken to be of it; else `num_actions` says how many
    there are, or the largest one that was taken.

    A row is a transition if none of the three rows before it is a terminal (it would be padding), they are all there,
    and so is the row of its s'. Where rows are left out, an episode is cut: its last transition is a time-out. Its
    return is the whole one all the same, as far as the files that are read hold the rewards.

    Args:
        folder: The folder.
        part: Which part of the replay: "1%", "5%" or "first-10%".
        num_actions: How many actions the game has, where the folder does not name it.
        discount: γ of the Monte-Carlo returns, where the log holds none.
        cache: Where the files are unpacked.
    """
    folder = Path(folder)
    if not folder.is_dir():
        refuse(str(folder), "there is no such folder.")
    # A part is of the whole replay: without its first files the fiftieth would be another one.
    numbers = checkpoint_numbers(folder, from_the_start=part is not None)
    shares = [1.0] * len(numbers) if part is None else ReplayPart.parse(part).of_files()[: len(numbers)]
    whole = [read_checkpoint(folder, number) for number in numbers[: len(shares)]]
    check_in_time(folder, whole)
    files = [file.beginning(max(1, round(share * len(file)))) for file, share in zip(whole, shares, strict=True)]
    where = Path(cache) if cache is not None else cache_beside(folder)
    frames = mapped_frames(folder, whole, files, where)

    terminals = np.concatenate([file.terminals for file in files]).astype(np.bool_)
    rows = transition_rows(terminals, _gaps(files))
    if len(rows) == 0:
        refuse(str(folder), "none of its rows has a whole stack of frames and a next frame.")
    actions = np.concatenate([file.actions for file in files])
    rewards = np.concatenate([file.rewards for file in files])[rows]
    world = next((f"atari/{part}" for part in reversed(folder.resolve().parts) if f"atari/{part}" in ATARI), None)
    space = DiscreteActions(num_actions or ATARI.get(world or "") or int(actions.max()) + 1)
    if space.count > MOST_ACTIONS:
        refuse(str(folder), f"its actions would be {space.count}, but there can be {MOST_ACTIONS} at most.")
    if actions.min() < 0 or actions.max() >= space.count:
        refuse(str(folder), f"its actions go from {actions.min()} to {actions.max()}, beyond {space.count} actions.")

    ended = terminals[rows]
    following = np.where(ended, rows, rows + 1)
    episodes = np.cumsum(np.append(0, (np.diff(rows) != 1) | ended[:-1])).astype(np.int32)
    last = np.append(episodes[1:] != episodes[:-1], True)
    return Transitions(
        observations=Frames(frames, rows.astype(np.int32), stack=STACK),
        actions=actions[rows],
        rewards=rewards,
        next_observations=Frames(frames, following.astype(np.int32), stack=STACK),
        terminals=ended,
        timeouts=last & ~ended,
        # The row of s' is there, and with it the action that was taken.
        next_actions=np.where(ended, 0, actions[following]).astype(np.int32),
        next_action_known=~ended,
        returns=_returns(whole, files, discount)[rows],
        episodes=episodes,
        action_space=space,
        returns_discount=discount,
        name=_name(folder) if part is None else f"{_name(folder)}-{part}",
        world=world,
    )


def _name(folder: Path) -> str:
    """Pong-1 of Pong/1/replay_logs; of other folders their last name, which must not be a number alone."""
    names = list(folder.resolve().parts[1:]) or [LOGS]
    if names[-1] == LOGS and len(names) > 1:
        names.pop()
    return "-".join(names[-2:]) if names[-1].isdigit() else names[-1]


def _returns(whole: list[Checkpoint], taken: list[Checkpoint], discount: float) -> NDArray[np.float32]:
    """Of every row that is taken of the files: to the end of its episode, or to where the files have a gap."""
    rewards, ends = np.concatenate([file.rewards for file in whole]), _gaps(whole)
    ends |= np.concatenate([file.terminals for file in whole]) == 1
    episodes = np.cumsum(ends, dtype=np.int32) - ends  # an end is a row of the episode that it ends
    starts = np.cumsum([0, *(len(file) for file in whole[:-1])])
    rows = np.concatenate([start + np.arange(len(file)) for start, file in zip(starts, taken, strict=True)])
    # Of fifty million rows, a hundredth needs few others.
    looked_at = np.zeros(episodes[-1] + 1, np.bool_)
    looked_at[episodes[rows]] = True
    needed = looked_at[episodes]
    returns = np.zeros(len(rewards), np.float32)
    returns[needed] = monte_carlo_returns(rewards[needed], episodes[needed], discount)
    return returns[rows]


def transition_rows(terminals: NDArray[np.bool_], gaps: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Which rows are transitions. `gaps` marks a row that is not followed by the one that came after it in time."""
    ends = terminals | gaps
    blocked = np.zeros(len(ends), np.bool_)
    for back in range(1, STACK):
        blocked[:back] = True
        blocked[back:] |= ends[:-back]
    return np.flatnonzero(~blocked & (terminals | ~gaps))


def _gaps(files: list[Checkpoint]) -> NDArray[np.bool_]:
    """Files follow each other without a gap only where their counts say so. (The public ones lack one row each: they
    were saved just before the last row of the buffer was filled.)
    """
    gaps = [np.zeros(len(file), np.bool_) for file in files]
    for number, file in enumerate(files):
        follows = number + 1 < len(files) and files[number + 1].first == file.first + len(file)
        gaps[number][-1] = not follows
    return np.concatenate(gaps)


def mapped_frames(folder: Path, files: list[Checkpoint], taken: list[Checkpoint], cache: Path) -> NDArray[np.uint8]:
    """The frames of the rows that are taken of the files, one file behind the other, mapped from the cache; unpacked
    into it the first time.
    """
    sources = [file_of(folder, "observation", file.number) for file in files]
    for source in sources:
        if not source.exists():
            refuse(str(source), "there is no such file.")
    seen = [
        [source.name, source.stat().st_size, source.stat().st_mtime_ns, len(some)]
        for source, some in zip(sources, taken, strict=True)
    ]
    target = cache / f"frames-{zlib.crc32(json.dumps(seen).encode()):08x}.npy"
    if not _is_whole(target, sum(map(len, taken))):
        check_may_unpack(target)
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            refuse(str(cache), f"the cache of frames cannot be made here ({error.strerror}); name another folder.")
        counts = [len(some) for some in taken]
        with (
            written_whole(target) as unfinished,
            reporter(f"unpacking {folder}", 0, sum(counts), show=sum(counts) > MANY, unit="frames") as progress,
            unfinished.open("wb") as out,
        ):
            _unpack(sources, files, counts, target, out, progress)
    return np.load(target, mmap_mode="r")


def _is_whole(target: Path, rows: int) -> bool:
    """Whether the cache holds so many frames; one that was damaged, or is something else, is made again."""
    try:
        with opened(target) as stream:
            shape, column_major, dtype, header = array_header(stream, str(target))
            size = os.fstat(stream.fileno()).st_size
    except UserError:
        return False
    fits = len(shape) == 3 and shape[0] == rows and dtype == np.uint8 and not column_major
    return fits and size == header + math.prod(shape)


def _unpack(
    sources: list[Path], files: list[Checkpoint], taken: list[int], target: Path, out: IO[bytes], progress: Reporter
) -> None:
    frame, at, rows, since = None, 0, sum(taken), time.monotonic()
    for path, file, count in zip(sources, files, taken, strict=True):
        with unpacking(path) as stream:
            shape = frame_header(path, stream, file.capacity)
            check_claim(str(path), math.prod(shape), path.stat().st_size)
            if frame is None:
                frame = shape[1:]
                needed = rows * math.prod(frame)
                announce(str(path.parent), needed, sum(source.stat().st_size for source in sources))
                _check_room(target.parent, needed)
                header = {"descr": "|u1", "fortran_order": False, "shape": (rows, *frame)}
                np.lib.format.write_array_header_1_0(out, header)
            elif frame != shape[1:]:
                refuse(str(path), f"its frames are {shape[1:]}, but those of the first file are {frame}.")
            for first in range(0, count, ROWS_AT_A_TIME):
                some = min(ROWS_AT_A_TIME, count - first)
                out.write(_frames(path, stream, (some, *shape[1:])).data)
                at += some
                progress.at(at, per_second=at / max(time.monotonic() - since, 1e-9), note="")
            # The checksum is behind the last byte. A part of the rows comes without it: to unpack all of a file for the
            # sake of its first hundredth would take as long as the whole replay.
            if count == len(file):
                for first in range(count, file.capacity, ROWS_AT_A_TIME):
                    _frames(path, stream, (min(ROWS_AT_A_TIME, file.capacity - first), *shape[1:]))
                check_end(path, stream)


def _check_room(folder: Path, needed: int) -> None:
    """Before the work, not after most of it."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        refuse(
            str(folder),
            f"the frames take {needed / 1e9:,.1f} GB, but there are {free / 1e9:,.1f} GB free; "
            "ask for a part, or name another folder for the cache (`:cache=FOLDER`).",
        )


def _frames(path: Path, stream: gzip.GzipFile, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    size = int(np.prod(shape))
    try:
        block = stream.read(size)
    except DAMAGE:
        block = b""
    if len(block) < size:
        refuse(str(path), DAMAGED)
    return np.frombuffer(block, np.uint8).reshape(shape)
