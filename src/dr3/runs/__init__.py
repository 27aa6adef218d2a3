"""What a run is on disk: its folder, configuration, members, checkpoints and results. Reading one needs no trainer."""

from dr3.runs.digest import digest
from dr3.runs.runs import Runs

__all__ = ["Runs", "digest"]
