from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from dr3.runs import Runs, digest
from dr3.runs.checkpoints import Checkpoints


class Pair(NamedTuple):
    left: dict[str, np.ndarray]
    right: list[np.ndarray]


TREE = [Pair({"b": np.arange(3.0), "a": np.ones((2, 2))}, [np.array(True), np.arange(2)])]


def rewritten(checkpoints: Checkpoints, step: int, names: dict[str, str]) -> None:
    """The arrays of one file under other names."""
    with np.load(checkpoints.path(step)) as stored:
        arrays = {names[name]: stored[name] for name in stored.files}
    np.savez(checkpoints.path(step), **arrays)


def test_arrays_are_named_by_their_path_in_the_tree(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(3, TREE)
    with np.load(checkpoints.path(3)) as stored:
        assert stored.files == ["0.left.a", "0.left.b", "0.right.0", "0.right.1"]
        np.testing.assert_array_equal(stored["0.left.b"], [0, 1, 2])


def test_an_array_of_another_name_is_refused(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(3, TREE)
    rewritten(
        checkpoints, 3, {"0.left.a": "0.left.c", **{name: name for name in ("0.left.b", "0.right.0", "0.right.1")}}
    )
    with pytest.raises(ValueError, match="other names or shapes"):
        checkpoints.restore(3, TREE)


def test_arrays_that_are_numbered_as_before_are_read(copied_run):
    runs = Runs(copied_run)
    before = digest(runs)
    for step in runs.checkpoints:
        with np.load(runs.folder.checkpoints.path(step)) as stored:
            numbered = {name: f"{number:05d}" for number, name in enumerate(stored.files)}
        assert numbered["0.trunk.stack.0.weight"] == "00000"
        rewritten(runs.folder.checkpoints, step, numbered)
    assert digest(Runs(copied_run)) == before
