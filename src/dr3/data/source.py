"""Data by what a user calls it: a file, a sample that comes with dr3, or a world to sample it from."""

from __future__ import annotations

import dataclasses
from importlib import resources
from pathlib import Path
from typing import Any

from dr3.data.dqn_replay import is_dqn_replay, read_dqn_replay
from dr3.data.gridworld import sample_gridworld
from dr3.data.mixing import concatenate, without_rewards
from dr3.data.read import READERS, read
from dr3.data.subsets import replay_subset, trajectory_subset
from dr3.data.transitions import Transitions
from dr3.envs import GRIDWORLDS, gridworld, is_gridworld
from dr3.errors import UserError, did_you_mean
from dr3.notation import settings_for, split

SAMPLE = "sample:"


def load(source: str | Path, *, discount: float = 0.99, allow_pickle: bool = False) -> Transitions:
    """The table behind `source`. `discount` is for Monte-Carlo returns that the source does not hold itself.

    - A file is read by the reader for its ending, a folder of DQN-replay files by theirs. Settings may follow:
      `replay.npz:replay=1%` is the paper's part of a replay ("5%", "first-10%"; see `replay_subset`), and
      `replay.npz:fraction=0.2:seed=1` rows drawn at random. `prior.npz:trajectories=5%` draws whole episodes, and
      `zero_rewards=true` forgets the rewards, as COG does with prior data. `old.hdf5:limit=1000` says where episodes
      were cut in a file of D4RL without time-outs; `replay_logs:cache=FOLDER:num_actions=6` where a DQN-replay folder
      is unpacked, and how many actions there are in a game that it does not name.
    - COG's own files (.npy) are pickles, and read only with `allow_pickle`.
    - `prior.npz+task.npz`: several of these, each with its settings, put together.
    - `sample:NAME` is a file that comes with dr3, with the same settings.
    - A gridworld's name samples the paper's 256 transitions from it, with settings of its own:
      `grid16smoothobs:size=1024:behavior=random:seed=1`. There `discount` also says what the behaviour policy
      holds to be optimal.
    """
    word = str(source)
    tables = [
        _sampled(part, discount) if is_gridworld(part) else _stored(part, discount, allow_pickle)
        for part in _parts(word)
    ]
    return dataclasses.replace(tables[0] if len(tables) == 1 else concatenate(tables), source=word)


def files_of(word: str) -> list[str]:
    """The files and folders that `load` looks for, there or not; a gridworld or a sample needs none."""
    return [
        part if Path(part).exists() else split(part)[0]
        for part in _parts(word)
        if not is_gridworld(part) and (Path(part).exists() or not part.startswith(SAMPLE))
    ]


def samples() -> dict[str, Path]:
    """The data that comes with dr3, by name."""
    folder = Path(str(resources.files("dr3.data") / "samples"))
    return {file.stem: file for file in sorted(folder.glob("*.npz"))}


def _parts(word: str) -> list[str]:
    return [word] if Path(word).exists() else word.split("+")


def _sampled(word: str, discount: float) -> Transitions:
    name, _ = split(word)

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

    return sample(**settings_for(sample, word))


def _stored(word: str, discount: float, allow_pickle: bool) -> Transitions:
    path, settings = _locate(word)

    def part(
        replay: str = "",
        fraction: float = 1.0,
        seed: int = 0,
        limit: int = 0,
        trajectories: str = "",
        zero_rewards: bool = False,
        cache: str = "",
        num_actions: int = 0,
    ) -> Transitions:
        if is_dqn_replay(path):
            where, count = cache or None, num_actions or None
            data = read_dqn_replay(path, part=replay or None, discount=discount, cache=where, num_actions=count)
        elif cache or num_actions:
            raise UserError(f"{path}: cache and num_actions are settings of DQN-replay folders, and this is none.")
        else:
            data = read(path, discount=discount, limit=limit or None, allow_pickle=allow_pickle)
            data = replay_subset(data, replay) if replay else data
        data = trajectory_subset(data, trajectories, seed=seed) if trajectories else data
        data = without_rewards(data) if zero_rewards else data
        return data if fraction == 1 else data.subset(fraction, seed=seed)

    return part(**_settings(part, word, settings))


def _settings(function: Any, word: str, settings: list[str]) -> dict[str, Any]:
    bare = [setting for setting in settings if "=" not in setting]
    if bare:  # a value alone would be taken for `replay`; in a path with a colon that would mislead
        raise UserError(f"There is no data {word!r}: {bare[0]!r} after the colon is no setting; write setting=value.")
    return settings_for(function, ":".join(["a file", *settings]))


def _locate(word: str) -> tuple[Path, list[str]]:
    """The file or folder, and the settings behind it. A file whose own name holds colons is found as it is."""
    if not word:
        raise UserError("The name of the data is empty, or one that is joined by + is.")
    if Path(word).exists():
        return Path(word), []
    if word.startswith(SAMPLE):
        name, settings = split(word.removeprefix(SAMPLE))
        if name not in samples():
            near = did_you_mean(name, samples())
            raise UserError(f"There is no sample {name!r}; there are {', '.join(samples()) or 'none'}{near}")
        return samples()[name], settings
    name, settings = split(word)
    if Path(name).exists() or Path(name).suffix.lower() in READERS:
        return Path(name), settings
    worlds = ", ".join(GRIDWORLDS)
    near = did_you_mean(name, GRIDWORLDS)
    raise UserError(f"There is no data {word!r}: it is neither a file nor one of the worlds {worlds}{near}")
