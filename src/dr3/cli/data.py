"""`dr3 data …`"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dr3.cli import collect
from dr3.cli.parsing import dispatch, parse, print_json, with_examples
from dr3.errors import UserError
from dr3.progress import plain_console

EXAMPLES = """\
dr3 data describe grid16smoothobs:size=1024

dr3 data describe "replay.npz:replay=1%"

dr3 data schema decisions.parquet > schema.toml

dr3 data describe decisions.parquet:schema=schema.toml

dr3 data describe "closed/prior.npz:trajectories=5%+closed/task.npz:trajectories=5%"

dr3 data convert "hopper_medium-v2.hdf5:fraction=0.2" hopper.npz

dr3 data convert breakout.npz breakout --format minari-arrow

dr3 data convert drawer_task.npy drawer_task.npz --allow-pickle"""

USAGE = f"""\
usage: dr3 data describe SOURCE [--json]
       dr3 data schema FILE > schema.toml
       dr3 data convert SOURCE OUT [--format FORMAT]
{collect.LINES}

examples:

{EXAMPLES}

{collect.EXAMPLES}"""


@dataclass(frozen=True)
class Describe:
    """What a file or a world's sample holds: rows, episodes, returns, ends, rewards, and what looks wrong."""

    source: Annotated[str, tyro.conf.Positional]
    """A file (.npz; .hdf5 as D4RL's; .parquet, .csv, .arrow or .feather with :schema=FILE), a folder of Minari, of
    DQN-replay files or of tables, sample:NAME, or a gridworld's name; each with settings. Several are joined by +."""

    json: bool = False
    """Print JSON instead of a table."""

    allow_pickle: bool = False
    """Load COG's own files (.npy), which are pickles: only if you trust where they come from."""


@dataclass(frozen=True)
class SchemaGuess:
    """Write a first guess of what a table's columns mean, as TOML with comments, to standard output."""

    file: Annotated[Path, tyro.conf.Positional]
    """A table (.parquet, .csv, .arrow, .feather), or a folder of them."""


@dataclass(frozen=True)
class Convert:
    """Read logged data and write it in another format."""

    source: Annotated[str, tyro.conf.Positional]
    """Whatever `dr3 data describe` takes."""

    out: Annotated[Path, tyro.conf.Positional]
    """Where it goes. The endings .npz and .hdf5 (.h5) say the format."""

    format: str | None = None
    """npz, d4rl (HDF5), minari (a folder with HDF5 inside), minari-arrow, dqn-replay (a folder; stacks of images)."""

    allow_pickle: bool = False
    """Load COG's own files (.npy), which are pickles: only if you trust where they come from."""


def main(arguments: list[str]) -> int:
    verbs = {"describe": _describe, "schema": _schema, "convert": _convert, "collect": collect.main}
    return dispatch("dr3 data", verbs, USAGE, arguments)


def _describe(arguments: list[str]) -> int:
    about = with_examples(Describe.__doc__ or "", EXAMPLES, "dr3 data describe")
    options = parse(Describe, arguments, prog="dr3 data describe", description=about)

    from dr3.data import describe, load, table

    description = describe(load(options.source, allow_pickle=options.allow_pickle))
    if options.json:
        print_json(dataclasses.asdict(description))
    else:
        plain_console().print(table(description))
    return 0


def _schema(arguments: list[str]) -> int:
    about = with_examples(SchemaGuess.__doc__ or "", EXAMPLES, "dr3 data schema")
    options = parse(SchemaGuess, arguments, prog="dr3 data schema", description=about)

    from dr3.data import guess_schema

    print(guess_schema(options.file), end="")
    return 0


def _convert(arguments: list[str]) -> int:
    about = with_examples(Convert.__doc__ or "", EXAMPLES, "dr3 data convert")
    options = parse(Convert, arguments, prog="dr3 data convert", description=about)

    from dr3.data import load, write

    if options.out.exists():
        raise UserError(f"{options.out} is there already; remove it or choose another name.")
    data = load(options.source, allow_pickle=options.allow_pickle)
    chosen = write(options.out, data, form=options.format)
    print(f"{len(data):,} rows in {len(set(data.episodes.tolist())):,} episodes are in {options.out} ({chosen})")
    return 0
