"""One number that says whether two runs came out the same."""

from __future__ import annotations

import hashlib
import json

import jax
import numpy as np

from dr3.runs.runs import Runs


def digest(runs: Runs) -> str:
    """SHA-256 over the last critics, the metrics and the evaluations; nothing in them knows the time of day.

    Args:
        runs: The run.
    """
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(runs.critics()):
        total.update(np.asarray(leaf).tobytes())
    for file in (runs.folder.metrics, runs.folder.evaluations):
        for row in runs.folder.lines(file):
            total.update(json.dumps(row, sort_keys=True).encode())
    return total.hexdigest()
