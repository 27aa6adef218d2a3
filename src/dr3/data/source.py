"""Data by what a user calls it: a file, a sample that comes with dr3, or a world to sample it from."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from importlib import resources
from numbers import Real
from pathlib import Path
from typing import Any

from dr3.data.dqn_replay import is_dqn_replay, read_dqn_replay
from dr3.data.gate import forcing, unpacking_nowhere
from dr3.data.gridworld import sample_gridworld
from dr3.data.minari import is_minari
from dr3.data.mixing import concatenate, without_rewards
from dr3.data.read import READERS, read
from dr3.data.subsets import replay_subset, trajectory_subset
from dr3.data.tables import Schema, is_table_object, read_table
from dr3.data.transitions import Transitions
from dr3.envs import GRIDWORLDS, gridworld, is_gridworld
from dr3.errors import UserError, did_you_mean
from dr3.files import exists
from dr3.notation import settings_for, split

SAMPLE = "sample:"


def load(
    source: Any,
    *,
    discount: float = 0.99,
    allow_pickle: bool = False,
    schema: Schema | Mapping[str, Any] | str | Path | None = None,
    force: bool = False,
) -> Transitions:
    """The table behind `source`.

    - A file is read by the reader for its ending, a folder of DQN-replay files by theirs. Settings may follow:
      `replay.npz:replay=1%` is the paper's part of a replay ("5%", "first-10%"; see `replay_subset`), and
      `replay.npz:fraction=0.2:seed=1` rows drawn at random. `prior.npz:trajectories=5%` draws whole episodes, and
      `zero_rewards=true` forgets the rewards, as COG does with prior data. `old.hdf5:limit=1000` says where episodes
      were cut in a file of D4RL without time-outs; `replay_logs:cache=FOLDER:num_actions=6` where a DQN-replay folder
      is unpacked, and how many actions there are in a game that it does not name.
    - A table of decisions (Parquet, CSV, Arrow or Feather, or a folder of them) needs a schema that says what its
      columns mean: `decisions.parquet:schema=schema.toml`. So does a table in memory: pyarrow's, a data frame of pandas
      or polars, a relation of DuckDB. `cache=FOLDER` is where a large one is unpacked.
    - `ant.hdf5:action_low=-2:action_high=2` are the bounds of actions that the file does not hold.
    - A data set of Minari is found by its folder, or by its name (`D4RL/hopper/medium-v0`) where Minari keeps it.
    - COG's own files (.npy) are pickles, and read only with `allow_pickle`.
    - `prior.npz+task.npz`: several of these, each with its settings, put together.
    - `sample:NAME` is a file that comes with dr3, with the same settings.
    - A gridworld's name samples the paper's 256 transitions from it, with settings of its own:
      `grid16smoothobs:size=1024:behavior=random:seed=1`.

    Args:
        source: One of these words, a path, or a table in memory.
        discount: γ of the Monte-Carlo returns, where the source holds none; in a gridworld also what the behaviour
            policy holds to be optimal.
        allow_pickle: Load COG's own files, which are pickles and may run any program.
        schema: What the columns of a table mean: a `Schema`, a mapping, or a TOML file.
        force: Read a file that unpacks to gigabytes, which is refused otherwise.

    Returns:
        The table, checked.

    Raises:
        UserError: There is no such data, or something is wrong with them: the sentence says which row or field.
    """
    if not isinstance(discount, Real) or isinstance(discount, bool):
        raise UserError(f"discount must be a number between 0 and 1, not {discount!r}.")
    with forcing(force):
        if is_table_object(source):
            return read_table(source, schema=schema, discount=discount)
        if not isinstance(source, str | Path):
            raise UserError(
                f"A {type(source).__name__} is no data: give a file, a word, or a table with Arrow's interface."
            )
        return _load(str(source), discount, allow_pickle=allow_pickle, schema=schema)


def load_recorded(source: str, *, discount: float) -> Transitions:
    """The same for a word that a record holds, such as a run's configuration: nothing that it says is written to.

    Args:
        source: The word.
        discount: γ of the Monte-Carlo returns, where the source holds none.
    """
    return _load(source, discount, recorded=True)


def _load(
    given: str, discount: float, *, allow_pickle: bool = False, schema: Any = None, recorded: bool = False
) -> Transitions:
    word: str | None = given
    tables = [
        _sampled(part, discount) if is_gridworld(part) else _stored(part, discount, allow_pickle, schema, recorded)
        for part in _parts(given)
    ]
    if schema is not None:  # only one that is in a file can be named, to find the same rows again
        word = f"{given}:schema={schema}" if isinstance(schema, str | Path) and len(tables) == 1 else None
    return dataclasses.replace(tables[0] if len(tables) == 1 else concatenate(tables), source=word)


def files_of(word: str) -> list[str]:
    """The files and folders that `load` looks for, there or not; a gridworld or a sample needs none.

    Args:
        word: What a user calls the data, as for `load`.
    """
    return [
        part if exists(Path(part)) else split(part)[0]
        for part in _parts(word)
        if not is_gridworld(part) and (exists(Path(part)) or not part.startswith(SAMPLE))
    ]


def absolute(word: str) -> str:
    """The same data for `load` from any folder: files by their whole paths.

    Args:
        word: What a user calls the data, as for `load`.
    """
    return "+".join(_absolute(part) for part in _parts(word))


def _absolute(part: str) -> str:
    if is_gridworld(part) or (part.startswith(SAMPLE) and not Path(part).exists()):
        return part
    path, settings = (Path(part), []) if Path(part).exists() else (Path(split(part)[0]), split(part)[1])
    whole = str(path.resolve())
    return part if ":" in whole or "+" in whole else ":".join([whole, *settings])


def samples() -> dict[str, Path]:
    """The data that comes with dr3, by name."""
    folder = Path(str(resources.files("dr3.data") / "samples"))
    return {file.stem: file for file in sorted(folder.glob("*.npz"))}


def _parts(word: str) -> list[str]:
    return [word] if exists(Path(word)) else word.split("+")


def _minari_root() -> Path:
    """Where Minari keeps its data sets, as it decides that itself."""
    return Path(os.environ.get("MINARI_DATASETS_PATH") or Path.home() / ".minari" / "datasets")


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


def _stored(word: str, discount: float, allow_pickle: bool, meaning: Any, recorded: bool) -> Transitions:
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
        schema: str = "",
        action_low: float = math.nan,
        action_high: float = math.nan,
    ) -> Transitions:
        if is_dqn_replay(path):
            where, count = cache or None, num_actions or None
            with unpacking_nowhere(recorded and bool(cache)):
                data = read_dqn_replay(path, part=replay or None, discount=discount, cache=where, num_actions=count)
        elif num_actions:
            raise UserError(f"{path}: num_actions is a setting of DQN-replay folders, and this is none.")
        else:
            with unpacking_nowhere(recorded and bool(cache)):
                data = read(
                    path,
                    discount=discount,
                    limit=limit or None,
                    allow_pickle=allow_pickle,
                    schema=schema or meaning,
                    cache=cache or None,
                    action_low=None if math.isnan(action_low) else action_low,
                    action_high=None if math.isnan(action_high) else action_high,
                )
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
    if exists(Path(word)):
        return Path(word), []
    if word.startswith(SAMPLE):
        name, settings = split(word.removeprefix(SAMPLE))
        if name not in samples():
            near = did_you_mean(name, samples())
            raise UserError(f"There is no sample {name!r}; there are {', '.join(samples()) or 'none'}{near}")
        return samples()[name], settings
    name, settings = split(word)
    if exists(Path(name)) or Path(name).suffix.lower() in READERS:
        return Path(name), settings
    if is_minari(found := _minari_root() / name):
        return found, settings
    worlds = ", ".join(GRIDWORLDS)
    near = did_you_mean(name, GRIDWORLDS)
    raise UserError(f"There is no data {word!r}: it is neither a file nor one of the worlds {worlds}{near}")
