"""`dr3 run …`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dr3.cli.parsing import dispatch, parse


@dataclass(frozen=True)
class Digest:
    """One SHA-256 over a run's final weights, metrics and evaluations: equal digests, equal runs."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run folder."""


@dataclass(frozen=True)
class ToTracker:
    """Write a run as an experiment tracker reads it, a tracker run for each member. Again replaces what was written."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run folder."""

    to: Literal["tensorboard", "wandb"]
    """TensorBoard's event files, or W&B's offline runs. Nothing is sent anywhere."""

    out: Path | None = None
    """Where they go; by default into the run folder."""


USAGE = """\
usage: dr3 run digest RUN
       dr3 run export RUN --to tensorboard|wandb [--out DIR]

examples:
  dr3 run digest runs/first
  dr3 run export runs/first --to tensorboard && tensorboard --logdir runs/first/tensorboard
  dr3 run export runs/first --to wandb && wandb sync runs/first/wandb/offline-run-*"""


def main(arguments: list[str]) -> int:
    return dispatch("dr3 run", {"digest": _digest, "export": _export}, USAGE, arguments)


def _digest(arguments: list[str]) -> int:
    options = parse(Digest, arguments, prog="dr3 run digest", description=Digest.__doc__ or "")

    from dr3.runs import Runs, digest

    print(digest(Runs(options.run)))
    return 0


def _export(arguments: list[str]) -> int:
    options = parse(ToTracker, arguments, prog="dr3 run export", description=ToTracker.__doc__ or "")

    from dr3.integrations.trackers import TRACKERS
    from dr3.runs import Runs

    for folder in TRACKERS[options.to](Runs(options.run), options.out):
        print(folder)
    return 0
