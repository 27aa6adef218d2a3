"""Checkpoints that are either whole or not there.

Orbax writes the arrays, into a folder that gets its final name only when it is complete. A seal (the SHA-256 of each
file) is written after that; a folder without its seal, or one that does not match it, counts as not written, and
resuming falls back to the one before.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np

SEAL = "seal.json"


class Checkpoints:
    """Numbered pytrees under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, step: int, tree: Any, *, keep: int | None = None) -> None:
        """Write the leaves of `tree`; with `keep`, older ones beyond that many are removed once this one is sealed."""
        path = self.path(step)
        if path.exists():
            shutil.rmtree(path)
        self.folder.mkdir(parents=True, exist_ok=True)
        leaves = {f"{number:05d}": np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(tree))}
        with _orbax() as writer:
            writer.save(path.absolute(), leaves)
        seal = json.dumps(_digests(path))
        partial = path / f"{SEAL}.partial"
        partial.write_text(seal)
        partial.rename(path / SEAL)
        if keep is not None:
            for old in self.steps()[:-keep]:
                shutil.rmtree(self.path(old))

    def restore(self, step: int, like: Any) -> Any:
        """The tree saved at `step`, in the structure of `like`. ValueError where the shapes are not its own."""
        with _orbax() as reader:
            stored = reader.restore(self.path(step).absolute())
        leaves = [np.asarray(stored[name]) for name in sorted(stored)]
        expected, structure = jax.tree.flatten(like)
        shapes = [(leaf.shape, leaf.dtype) for leaf in expected]
        if shapes != [(leaf.shape, leaf.dtype) for leaf in leaves]:
            raise ValueError(f"{self.path(step)} holds arrays of other shapes than this run's")
        return jax.tree.unflatten(structure, leaves)

    def steps(self) -> list[int]:
        """Steps that have a folder, in order, sealed or not."""
        if not self.folder.is_dir():
            return []
        return sorted(int(path.name) for path in self.folder.iterdir() if path.name.isdigit())

    def whole(self, step: int) -> bool:
        """Whether the checkpoint is complete and unchanged since it was sealed."""
        try:
            return json.loads((self.path(step) / SEAL).read_text()) == _digests(self.path(step))
        except (OSError, ValueError):
            return False

    def path(self, step: int) -> Path:
        return self.folder / f"{step:09d}"


def _digests(path: Path) -> dict[str, str]:
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith(SEAL))
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _orbax() -> Any:
    import orbax.checkpoint as ocp

    return ocp.Checkpointer(ocp.PyTreeCheckpointHandler())
