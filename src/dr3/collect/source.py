"""Data by what a user calls it: a file, or a world to sample it from."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from dr3.collect.gridworld import sample_gridworld
from dr3.data import READERS, Transitions, read
from dr3.envs import GRIDWORLDS, gridworld
from dr3.errors import UserError
from dr3.notation import settings_for, split


def load(source: str | Path, *, discount: float = 0.99) -> Transitions:
    """The table behind `source`.

    A file is read by the reader for its ending. A gridworld's name samples the paper's 256 transitions from it, and
    settings may follow the name: `grid16smoothobs:size=1024:behavior=random:seed=1`. `discount` is for Monte-Carlo
    returns and, in a gridworld, for what its behaviour policy holds to be optimal.
    """
    word = str(source)
    name, _ = split(word)
    if name in GRIDWORLDS:

        def sample(
            size: int = 256,
            behavior: str = "mixed",
            seed: int = 0,
            dim_obs: int = 16,
            lava: float = 0.0,
            matrix_only_noise: bool = False,
        ) -> Transitions:
            world = gridworld(name, dim_obs=dim_obs, lava=lava, matrix_only_noise=matrix_only_noise)
            return sample_gridworld(world, size=size, behavior=behavior, seed=seed, discount=discount)

        data = sample(**settings_for(sample, word))
    elif Path(source).exists() or Path(source).suffix.lower() in READERS:
        data = read(source, discount=discount)
    else:
        worlds = ", ".join(GRIDWORLDS)
        raise UserError(f"There is no data {word!r}: it is neither a file nor one of the worlds {worlds}.")
    return dataclasses.replace(data, source=word)
