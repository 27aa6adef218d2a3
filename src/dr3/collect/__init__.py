"""Making data by acting."""

from dr3.collect.gridworld import sample_gridworld

__all__ = ["sample_gridworld"]
