"""Making data by acting."""

from dr3.collect.gridworld import sample_gridworld
from dr3.collect.source import files_of, load, samples

__all__ = ["files_of", "load", "sample_gridworld", "samples"]
