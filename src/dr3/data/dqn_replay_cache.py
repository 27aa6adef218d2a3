"""The frames of a DQN replay, unpacked once into a file that is mapped into memory from then on."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import time
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import refuse
from dr3.data.dqn_replay_files import (
    DAMAGE,
    DAMAGED,
    ROWS_AT_A_TIME,
    Checkpoint,
    check_end,
    file_of,
    frame_header,
)
from dr3.files import written_whole
from dr3.progress import Reporter, reporter

MANY = 50_000  # frames: some seconds of unpacking, which are not passed in silence


def mapped_frames(folder: Path, files: list[Checkpoint], taken: list[Checkpoint], cache: Path) -> NDArray[np.uint8]:
    """The frames of the rows that are taken of the files, one file behind the other, mapped from the cache; unpacked
    into it the first time.
    """
    sources = [file_of(folder, "observation", file.number) for file in files]
    for source in sources:
        if not source.exists():
            refuse(str(source), "this file is missing.")
    seen = [
        [source.name, source.stat().st_size, source.stat().st_mtime_ns, len(some)]
        for source, some in zip(sources, taken, strict=True)
    ]
    target = cache / f"frames-{zlib.crc32(json.dumps(seen).encode()):08x}.npy"
    if not target.exists():
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            refuse(str(cache), f"the cache of frames cannot be made here ({error.strerror}); name another folder.")
        counts = [len(some) for some in taken]
        with (
            written_whole(target) as unfinished,
            reporter(f"unpacking {folder}", 0, sum(counts), show=sum(counts) > MANY, unit="frames") as progress,
        ):
            _unpack(sources, files, counts, unfinished, progress)
    return np.load(target, mmap_mode="r")


def _unpack(sources: list[Path], files: list[Checkpoint], taken: list[int], target: Path, progress: Reporter) -> None:
    out, at, rows, since = None, 0, sum(taken), time.monotonic()
    for path, file, count in zip(sources, files, taken, strict=True):
        with gzip.open(path, "rb") as stream:
            shape = frame_header(path, stream, file.capacity)
            if out is None:
                _check_room(target.parent, rows * math.prod(shape[1:]))
                out = np.lib.format.open_memmap(target, "w+", np.uint8, (rows, *shape[1:]))
            elif out.shape[1:] != shape[1:]:
                refuse(str(path), f"its frames are {shape[1:]}, but those of the first file are {out.shape[1:]}.")
            for first in range(0, count, ROWS_AT_A_TIME):
                some = min(ROWS_AT_A_TIME, count - first)
                out[at : at + some] = _frames(path, stream, (some, *shape[1:]))
                at += some
                progress.at(at, per_second=at / max(time.monotonic() - since, 1e-9), note="")
            # The checksum is behind the last byte. A part of the rows comes without it: to unpack all of a file for the
            # sake of its first hundredth would take as long as the whole replay.
            if count == len(file):
                for first in range(count, file.capacity, ROWS_AT_A_TIME):
                    _frames(path, stream, (min(ROWS_AT_A_TIME, file.capacity - first), *shape[1:]))
                check_end(path, stream)
    assert out is not None
    out.flush()


def _check_room(folder: Path, needed: int) -> None:
    """A mapped file is as long as it should be from the start: on a full disk, writing to it would kill the process."""
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
