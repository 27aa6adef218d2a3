"""Making data by acting."""

from dr3.collect.gridworld import sample_gridworld
from dr3.collect.source import load, samples

__all__ = ["load", "sample_gridworld", "samples"]
