"""The compiled loop, populations, checkpoints, evaluation, the run folder."""

from dr3.training.digest import digest
from dr3.training.runs import Runs
from dr3.training.train import train

__all__ = ["Runs", "digest", "train"]
