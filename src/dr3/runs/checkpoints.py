"""Checkpoints that are either whole or not there.

One file each: the leaves of a pytree in an uncompressed npz, which carries a checksum of every array. It is written
under another name and renamed when it is on the disk. (Orbax was tried first: for learners of this size a save took 40
to 160 ms in some hundred tasks and threads, against 2 ms, and nothing here is sharded over hosts.)
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dr3.data.npz import DAMAGE
from dr3.files import clear_unfinished, written_whole


class Checkpoints:
    """Numbered pytrees under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, step: int, tree: Any, *, keep: int | None = None) -> None:
        """Write the leaves of `tree`; with `keep`, older ones beyond that many are removed after that."""
        self.folder.mkdir(parents=True, exist_ok=True)
        leaves = {f"{number:05d}": np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(tree))}
        with written_whole(self.path(step)) as unfinished, unfinished.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **leaves)
        if keep is not None:
            for old in self.steps()[:-keep]:
                self.path(old).unlink()

    def restore(self, step: int, like: Any) -> Any:
        """The tree saved at `step`, in the structure of `like`. ValueError where the file does not hold such a tree.

        That is possible of a file that is `whole`: what tells where its arrays begin and end has no checksum.
        """
        try:
            # Opened here, because numpy leaves the file open when the archive cannot be read.
            with self.path(step).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                leaves = [np.asarray(stored[name]) for name in sorted(stored.files)]
        except DAMAGE as error:
            raise ValueError(f"{self.path(step)} cannot be read") from error
        expected, structure = jax.tree.flatten(like)
        if [(leaf.shape, leaf.dtype) for leaf in leaves] != [(leaf.shape, leaf.dtype) for leaf in expected]:
            raise ValueError(f"{self.path(step)} holds arrays of other shapes than this run's")
        return jax.tree.unflatten(structure, leaves)

    def steps(self) -> list[int]:
        """Steps that have a file, in order, whole or not."""
        return sorted(int(file.stem) for file in self.folder.glob("*.npz"))

    def rewind(self, step: int) -> None:
        """Remove those after `step`, and what a kill left half-written under another name."""
        clear_unfinished(self.folder)
        for later in self.steps():
            if later > step:
                self.path(later).unlink()

    def whole(self, step: int) -> bool:
        """Whether the file is complete and every array in it matches its checksum."""
        try:
            with zipfile.ZipFile(self.path(step)) as archive:
                return archive.testzip() is None
        except DAMAGE:
            return False

    def path(self, step: int) -> Path:
        return self.folder / f"{step:09d}.npz"
