"""Checkpoints that are either whole or not there.

One file each: the leaves of a pytree in an uncompressed npz, which carries a checksum of every array. An array is named
by its path in the tree: `0.trunk.stack.1.weight` is of member 0. The file is written under another name and renamed
when it is on the disk. (Orbax was tried first: for learners of this size a save took 40 to 160 ms in some hundred
tasks and threads, against 2 ms, and nothing here is sharded over hosts.)
"""

from __future__ import annotations

import json
import os
import re
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dr3.data.gate import read_array
from dr3.data.npz import DAMAGE
from dr3.errors import UserError
from dr3.files import clear_unfinished, open_regular, written_whole


class Checkpoints:
    """Numbered pytrees under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, step: int, tree: Any, *, keep: int | None = None, note: Any = None) -> None:
        """Write the leaves of `tree`; with `keep`, older ones beyond that many are removed after that.

        A `note`, which JSON can hold, goes into the archive's comment, with a checksum: `note(step)` reads it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        leaves = {name: np.asarray(leaf) for name, leaf in leaves_by_name(tree).items()}
        with written_whole(self.path(step)) as unfinished, unfinished.open("wb+") as stream:
            np.savez(stream, allow_pickle=False, **leaves)
            if note is not None:
                with zipfile.ZipFile(stream, "a") as archive:
                    text = json.dumps(note).encode()
                    archive.comment = b"%08x %b" % (zlib.crc32(text), text)
        if keep is not None:
            for old in self.steps()[:-keep]:
                self.path(old).unlink()

    def restore(self, step: int, like: Any) -> Any:
        """The tree saved at `step`, in the structure of `like`. ValueError where the file does not hold such a tree.

        That is possible of a file that is `intact`: what tells where its arrays begin and end has no checksum.
        """
        try:
            with self._archive(step) as archive:
                entries = sorted(archive.infolist(), key=lambda entry: entry.filename)
                leaves = {entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in entries}
        except (*DAMAGE, UserError) as error:
            raise ValueError(f"{self.path(step)} cannot be read") from error
        expected = leaves_by_name(like)
        if "00000" in leaves:  # until format 2 they were numbered, in the order of the tree
            leaves = dict(zip(expected, leaves.values(), strict=True))
        if _kinds(leaves) != _kinds(expected):
            raise ValueError(f"{self.path(step)} holds arrays of other names or shapes than this run's")
        return jax.tree.unflatten(jax.tree.structure(like), [leaves[name] for name in expected])

    def steps(self) -> list[int]:
        """Steps that have a file, in order, whole or not; files of other names are somebody else's."""
        files = {file for file in self.folder.glob("*.npz") if re.fullmatch("[0-9]{9,12}", file.stem)}
        steps = sorted(int(file.stem) for file in files)
        return [step for step in steps if self.path(step) in files and self.path(step).is_file()]

    def rewind(self, step: int) -> None:
        """Remove those after `step`, and what a kill left half-written under another name."""
        clear_unfinished(self.folder)
        for later in self.steps():
            if later > step:
                self.path(later).unlink()

    def intact(self, step: int) -> bool:
        """Whether the file is complete and every array in it matches its checksum."""
        try:
            with self._archive(step) as archive:
                _note_of(archive)
                return archive.testzip() is None
        except (*DAMAGE, UserError):
            return False

    def note(self, step: int) -> Any:
        """What `save` was given with it; None where it was nothing, or the file is not there or not whole."""
        try:
            with self._archive(step) as archive:
                return _note_of(archive)
        except (*DAMAGE, UserError):
            return None

    def path(self, step: int) -> Path:
        return self.folder / f"{step:09d}.npz"

    @contextmanager
    def _archive(self, step: int) -> Generator[zipfile.ZipFile]:
        """What `save` has written is as large in the file as in the memory; anything else is not unpacked."""
        with open_regular(self.path(step)) as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise zipfile.BadZipFile("its arrays are compressed")
            if sum(entry.file_size for entry in entries) > os.fstat(file.fileno()).st_size:
                raise zipfile.BadZipFile("its arrays are larger than the file")
            yield archive


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Any:
    with archive.open(entry) as stream:
        values = read_array(stream, entry.filename, stored=entry.compress_size, size=entry.file_size)
        stream.read(1)  # only on looking for more is the checksum compared
        return values


def _note_of(archive: zipfile.ZipFile) -> Any:
    if not archive.comment:
        return None
    checksum, _, text = archive.comment.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        raise zipfile.BadZipFile("the comment does not match its checksum")
    return json.loads(text)


def leaves_by_name(tree: Any) -> dict[str, Any]:
    """Every leaf by its path in the tree, such as `trunk.stack.1.weight`, in the order of the tree."""
    paths = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in paths}


def _kinds(leaves: dict[str, Any]) -> dict[str, Any]:
    return {name: (leaf.shape, leaf.dtype) for name, leaf in leaves.items()}
