"""On how many batches label noise has a stationary covariance: python docs/results/contraction.py --help

Random batches of the data a run was trained on, features of its critics at some steps, float64: whether I - ηK
contracts within the range of the features, with K and η as in `LabelNoiseDR3`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from numpy.typing import NDArray

import dr3
from dr3.regularizers.label_noise import RELATIVE_STEP


@dataclass(frozen=True)
class Options:
    """What to look at."""

    run: tyro.conf.Positional[Path]
    """The run folder."""

    steps: tuple[int, ...] = (0, 750, 3000, 7500, 15000)
    """Checkpoints."""

    batches: int = 40
    """Batches for each member."""

    batch_size: int = 32
    """Rows of a batch."""


def main(options: Options) -> None:
    runs = dr3.open(options.run)
    data = dr3.load(runs.config.data.source)
    random = np.random.default_rng(0)
    for step in options.steps:
        found = []
        for member in range(len(runs)):
            rows = random.integers(0, len(data), (options.batches, options.batch_size))
            some, places = np.unique(rows.ravel(), return_inverse=True)
            batch = data.rows(some)
            bootstraps = runs.members[member].method.discount * (1.0 - batch.terminals[places].reshape(rows.shape))
            sides = (
                runs.features(np.asarray(side[:]), batch.actions, member=member, step=step)
                for side in (batch.observations, batch.next_observations)
            )
            here, following = (side.astype(np.float64)[places].reshape(*rows.shape, -1) for side in sides)
            found += [contracts(*one) for one in zip(here, following, bootstraps, strict=True)]
        print(f"step {step}: {sum(found)} of {len(found)} batches contract")


def contracts(phi: NDArray, phi_next: NDArray, bootstraps: NDArray) -> bool:
    """|1 - ηλ| < 1 for every eigenvalue of K = φφᵀ - γ(1 - d) φ'φᵀ, without the directions that φφᵀ does not have."""
    gram = phi @ phi.T
    K = gram - bootstraps[:, None] * (phi_next @ phi.T)
    sizes, basis = np.linalg.eigh(gram)
    basis = basis[:, sizes > len(gram) * np.finfo(np.float32).eps * sizes[-1]]
    eta = RELATIVE_STEP / np.linalg.norm(K)
    return bool(np.all(np.abs(1 - eta * np.linalg.eigvals(basis.T @ K @ basis)) < 1))


if __name__ == "__main__":
    main(tyro.cli(Options))
